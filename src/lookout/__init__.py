"""Lookout watches the services a wallet depends on and reports what it sees."""

__version__ = "3.0.0"
