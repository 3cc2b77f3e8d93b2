"""One async method per operation, on Python values. Each facade (RPC, REST) calls these and adds only the wire format.

Raises the errors of `base.errors`. Knows no headers, HTTP methods or parameter names of facades.
"""
