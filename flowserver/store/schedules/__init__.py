"""Schedules: their rows, and the turns that the engine commits."""
