"""The front: a second process of a node, which speaks HTTP for it.

One process of Python computes on one core. Where a node may use two, the front reads and writes the requests of callers
and the calls of functions, and checks keys and signatures; the engine decides and persists. The two are one node: they
start together, and when either of them is gone, so is the other.
"""
