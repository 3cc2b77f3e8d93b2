"""Prometheus metrics of one server process."""
