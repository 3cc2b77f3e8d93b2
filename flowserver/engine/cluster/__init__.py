"""Which nodes there are, what this one holds, and what they tell each other."""
