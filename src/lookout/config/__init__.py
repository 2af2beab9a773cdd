"""The configuration: its tables, which check themselves, and the strict reading of its file."""
