"""Messages to people: their words, and the way out."""
