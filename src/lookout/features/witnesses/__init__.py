"""Other deployments that ask the same services from other places, and the rows that all places give together (W)."""
