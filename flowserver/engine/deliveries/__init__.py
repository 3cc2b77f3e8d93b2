"""Deliveries in time: what topics and ended invocations send to endpoints, queues and functions."""
