"""The words every layer shares: errors, limits, instants, names, JSON values. Imports nothing of ours."""
