"""Where something can be delivered, what is sent there, and when it is tried again."""
