"""Compiles and evaluates paths, references and conditions. Knows no YAML and does no I/O.

Everything is compiled when a definition is read, so that running an execution can neither fail on syntax nor
spend unbounded time. Evaluation is total.
"""
