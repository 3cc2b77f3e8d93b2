"""TODO api/rpc."""
