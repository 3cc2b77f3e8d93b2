"""The behaviour of each step type, one file each: entering, resuming and finishing."""
