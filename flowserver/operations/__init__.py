"""One async method per operation, in Python values; every facade (RPC, REST) calls these and adds only spelling.

Raises the errors of `base.errors`; knows no headers, verbs or parameter spellings.
"""
