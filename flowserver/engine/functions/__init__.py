"""Calls of functions: where they go, how many at once, and for whom."""
