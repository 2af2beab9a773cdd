"""Builds the monitor and the server from settings."""
