"""TODO invokers."""
