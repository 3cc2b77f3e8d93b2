"""TODO hosting."""
