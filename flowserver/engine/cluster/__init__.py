"""Which nodes are alive, the lease of this one, and the notices that nodes send each other."""
