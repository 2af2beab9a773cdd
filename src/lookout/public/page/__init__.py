"""The status page: its files, and the table in it for those without JavaScript."""
