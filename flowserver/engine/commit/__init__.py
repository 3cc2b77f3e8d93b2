"""The single writer: messages to executions become batches, and each batch is one transaction."""
