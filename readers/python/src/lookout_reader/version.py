"""Which version of the reader this is."""

__version__ = "3.0.0"
