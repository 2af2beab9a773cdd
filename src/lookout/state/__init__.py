"""The stored forms: the state as named pieces of bytes, the seal over them, and the observation log."""
