"""TODO machine/steps."""
