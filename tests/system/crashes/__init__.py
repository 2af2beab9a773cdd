"""Crash points: the monitor's store hit at every single place where it can be, one place at a time.

Nothing is imported here: each victim, and there are thousands, imports this package.
"""
