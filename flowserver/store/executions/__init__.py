"""The rows of executions: loaded, saved, listed, found when due, deleted."""
