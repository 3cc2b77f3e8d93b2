"""The rows of asynchronous invocations, and what is configured for them."""
