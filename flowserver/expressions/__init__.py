"""Text to checked expression to value: paths, references and conditions. No YAML, no input or output.

Everything is compiled when a definition is read, so that running an execution can neither fail on syntax nor
spend unbounded time: all evaluation is total.
"""
