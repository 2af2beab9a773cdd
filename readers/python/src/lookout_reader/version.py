"""Which version of the reader this is."""

from typing import Final

__version__: Final = "0.1.0"
