"""The configuration: its tables, which check themselves, and the strict reading of its file."""

from typing import Final

CONFIG_VARIABLE: Final = "LOOKOUT_CONFIG"  # the environment's default path of the file
DEFAULT_CONFIG: Final = "lookout.toml"
