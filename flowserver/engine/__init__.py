"""Asyncio around the machine: it delivers messages to executions, commits the results, then acts on them.

Owns time and concurrency. No call, timer or reply is made before the commit that it depends on.
"""
