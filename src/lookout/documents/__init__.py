"""The two documents as bytes: their JSON, their ETags, their paths and their headers."""
