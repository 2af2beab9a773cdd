"""Where the monitor and the servers meet: two documents and the monitor's state, nothing of what they mean."""
