"""A simulated world of upstreams in which things fail, and its HTTP servers. It stands alone: it imports nothing of
Lookout, and what it knows of the protocols is its own, so that a mistake in Lookout cannot hide in it.
"""
