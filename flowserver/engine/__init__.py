"""Asyncio around the machine: it brings messages to executions, commits what came of them, then acts.

Owns time and concurrency. Nothing leaves (no call, no timer, no answer) before the commit it rests on.
"""
