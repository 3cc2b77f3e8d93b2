"""Asynchronous invocations of functions (Serverless Tasks) in time: they wait, run, retry, end."""
