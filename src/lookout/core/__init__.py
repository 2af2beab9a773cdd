"""The contract's rules as pure functions and plain values: no I/O, no clock, no asyncio.

An instant is a whole number of milliseconds since 1970 in UTC and its name ends in ``_at``; a duration's name
ends in its unit. Time always comes in as an argument.

The small values that every probe makes are declared ``gc=False``: they hold no cycles, so the collector can skip them.
"""
