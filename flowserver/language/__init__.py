"""The flow definition language: text to a compiled graph, or diagnostics that point at the text.

`parser.parse` is the entry point; `graph` is its result, and all that the machine knows of this package.
"""
