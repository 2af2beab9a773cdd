"""Messages to people: their texts, the outbox they wait in, and Apprise, which sends them."""
