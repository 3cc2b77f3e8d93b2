"""Traces of executions and requests, as OpenTelemetry has them. Off unless the setting `tracing` says otherwise.

A span is made when what it shows is over, from instants that are stored: none stays open while an execution waits, and
a crash loses at most the spans that were not exported yet. Their ids follow from those of executions and events, so
every node gives the same ones and none is stored.
"""
