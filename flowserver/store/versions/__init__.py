"""Published versions of flows and their aliases."""
