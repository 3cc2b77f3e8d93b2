"""TODO expressions."""
