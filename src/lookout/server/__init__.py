"""Answering requests: ready-made replies, chosen by a pure function, kept up to date with the store."""
