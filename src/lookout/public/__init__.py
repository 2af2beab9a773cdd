"""What people and other tools see, made from the two documents alone."""
