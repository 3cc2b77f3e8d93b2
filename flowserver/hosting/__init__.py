"""The separate program `flowserver functions serve FILE`: hosts Python handlers for tutorials and development.

It uses nothing of the server but its base layer, and registers functions with `flowserver.client`.
"""
