"""Which version of the reader this is."""

__version__ = "0.1.0"
