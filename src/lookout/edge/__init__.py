"""The cache in front of the servers: its configuration, made from the settings."""
