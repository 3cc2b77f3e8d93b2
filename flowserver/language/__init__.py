"""The flow definition language: text to a compiled graph, or diagnostics that point at the text.

`parser.parse` is the way in; `graph` is what comes out and all that the machine knows of this package.
"""
