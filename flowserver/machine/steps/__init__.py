"""One behaviour a file: what entering, resuming and finishing means for each step type."""
