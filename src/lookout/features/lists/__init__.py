"""Indexers' lists beside their chains, their running hashes and the ppoi node (S17 to S21)."""
