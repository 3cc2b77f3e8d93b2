"""The life of an asynchronous invocation as a table of transitions."""
