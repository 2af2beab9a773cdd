"""Code that every package may use, and that imports no other package."""
