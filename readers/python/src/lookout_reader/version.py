"""Which version of the reader this is."""

__version__ = "1.0.0"
