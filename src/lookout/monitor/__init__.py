"""When to probe, watching, and publishing."""
