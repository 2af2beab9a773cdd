"""The optional parts of the monitor, each in a room of its own: the registry alone names them.

To remove one, delete its folder, its name in the registry, and its own command in ``cli``.
"""
