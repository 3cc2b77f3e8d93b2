"""What nodes decide about each other: which of them is dead, and how they divide work without a leader."""
