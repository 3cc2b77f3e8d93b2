"""Watches how many calls wait for a place at each node, as its /metrics says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import aiohttp

from tests.chaos.journal import Journal
from tests.chaos.nodes import Node

GAUGE = "flowserver_calls_waiting"
LOOK_SECONDS = 0.8


@contextlib.asynccontextmanager
async def backlog_watched(
    nodes: Sequence[Node], session: aiohttp.ClientSession, journal: Journal
) -> AsyncIterator[None]:
    """While the block runs, note at each node how many calls wait, and in the journal the most there ever were."""
    watching = asyncio.gather(*(_watch(node, session, journal) for node in nodes))
    try:
        yield
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def _watch(node: Node, session: aiohttp.ClientSession, journal: Journal) -> None:
    while True:
        node.calls_waiting = 0.0
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):  # it may be down, halted or leaving
            node.calls_waiting = await node.gauge(session, GAUGE) or 0.0
        journal.calls_waiting_max = max(journal.calls_waiting_max, node.calls_waiting)
        await asyncio.sleep(LOOK_SECONDS)
