"""What the monitor and the servers share: two documents and the monitor's state, as opaque bytes."""
