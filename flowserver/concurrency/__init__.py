"""Mechanisms of asyncio and threads that know nothing of flows, HTTP or the database. Imports `base` alone."""
