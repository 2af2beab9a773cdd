"""Which version of the reader this is."""

__version__ = "2.0.0"
