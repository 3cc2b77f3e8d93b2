"""Reads for requests and for the engine: look-ups by key in batches, and slow reads beside them."""
