"""The configuration: its tables, which check themselves, and the strict reading of its file."""

from typing import Final

CONFIG_VARIABLE: Final = "LOOKOUT_CONFIG"  # of the environment: names the file where nothing else does
DEFAULT_CONFIG: Final = "lookout.toml"
