"""Messages to executions become batches, and batches become commits: the one writer, and what it needs."""
