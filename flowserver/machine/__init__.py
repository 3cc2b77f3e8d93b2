"""The deterministic core: what a flow means. No clock, no I/O, no randomness, no SQL.

`advance(flow, execution, message, environment)` edits the execution it is given and returns a `Turn`: the history
events that happened, the commands asked of the world, and which scopes changed. May import base, expressions and
language.graph only.
"""
