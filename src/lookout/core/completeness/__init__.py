"""Whether an indexer has all that its chain has (S17 to S19): what is known, and how it is found out."""
