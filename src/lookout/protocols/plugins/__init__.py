"""Protocols of other packages. Each is imported only if the configuration names it, and asked in a process of its own:
whatever its code does there, nobody else's probe is late."""
