"""The status page: its files, and the table for browsers without JavaScript."""
