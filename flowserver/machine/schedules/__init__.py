"""Schedules: when a flow is to start, and what a start that is due comes to. Knows no clock: instants are arguments."""
