"""Proofs about flows before they run: what each step can read, how long it can take, which errors escape.

`proving.prove` is the entry point, `rules` the table of what is found. No clock, no I/O: text and limits are arguments.
"""
