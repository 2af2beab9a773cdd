"""The simulated world, and a past in it."""
