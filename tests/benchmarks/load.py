"""Generates load: a number of pieces of work, with a limit on those in flight, and the latency of each."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

Piece = Callable[[int], Awaitable[float | None]]
"""Does the work of a number. Returns its latency in seconds, or None if the latency is the elapsed time."""


async def run_in_flight(numbers: Iterable[int], in_flight: int, piece: Piece) -> list[float]:
    """Do the piece for every number, `in_flight` at a time; returns the latencies in seconds."""
    left = iter(numbers)
    latencies: list[float] = []

    async def work() -> None:
        for number in left:
            began = time.perf_counter()
            latency = await piece(number)
            latencies.append(time.perf_counter() - began if latency is None else latency)

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work())
    return latencies
