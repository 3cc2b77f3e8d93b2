"""Ways to reach the functions of task steps. Knows invocations and replies, nothing of flows or storage."""
