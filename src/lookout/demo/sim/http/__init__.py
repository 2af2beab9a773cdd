"""How each simulated upstream speaks HTTP, and how it misbehaves."""
