"""What other tools read: a feed of incidents, badges and a summary, all made from the two documents alone."""
