"""Starts executions when their schedules are due."""
