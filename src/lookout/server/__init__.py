"""Answers requests with ready-made replies, which a pure function chooses, and which follow the store."""
