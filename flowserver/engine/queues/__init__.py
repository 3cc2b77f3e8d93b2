"""Queues in time: sends, receives and long polls."""
