"""Which nodes are alive, and the lease of this one."""
