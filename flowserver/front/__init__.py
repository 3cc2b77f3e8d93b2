"""The front: a second process of a node, which speaks HTTP for it.

One process of Python computes on one core. Where a node may use two, the front reads and writes the requests of callers
and the calls of functions, and checks keys and signatures; the engine decides and persists. The two are one node: they
start together, and when one of them ends, so does the other. The next start finds what a crash leaves.

An action with its parameters, or a call with its reply, is one frame of the link; all frames of one turn of the event
loop are one write. The front is forked before any thread or connection exists, and keeps no state. It is not the
default: an execution that runs alone, and queues, take longer with it. Moving only the calls of functions to a second
process brought less than a tenth.
"""
