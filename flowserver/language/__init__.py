"""TODO language."""
