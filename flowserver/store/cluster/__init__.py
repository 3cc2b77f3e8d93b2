"""The rows of nodes, and the notices between them."""
