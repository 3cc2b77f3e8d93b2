"""Asynchronous invocations of functions (Serverless Tasks): queues, runs, retries, stops, recovery."""
