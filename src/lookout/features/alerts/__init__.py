"""Alert messages: their texts, the outbox, and Apprise, which sends them."""
