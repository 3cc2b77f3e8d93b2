"""The rows of queues, messages, topics and deliveries."""
