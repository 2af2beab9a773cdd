"""A simulated world of chains and third-party services: what each of them answers, and what is true of it.

Everything is a pure function of a layout, a seed, the episodes and an instant in milliseconds since 1970. There is no
clock in here and nothing is ever asked in order: two questions about the same instant have the same answer.
"""
