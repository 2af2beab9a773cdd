"""The packages as they are published, in the environments that they are for."""
