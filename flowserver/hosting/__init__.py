"""The separate program `flowserver functions serve FILE`: hosts Python handlers for tutorials and development.

Nothing of the server is used here but its base layer; functions are registered over REST like anybody's.
"""
