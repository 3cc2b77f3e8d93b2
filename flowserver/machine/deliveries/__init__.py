"""Deliveries: destinations, the content that is sent, and the times of retries."""
