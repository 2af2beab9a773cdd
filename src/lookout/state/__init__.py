"""The stored forms: the state as named documents, those of former versions, and the observation log."""
