"""What every room may use, and what knows no other."""
