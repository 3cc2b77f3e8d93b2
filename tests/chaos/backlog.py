"""Watches how many calls wait for a slot at each node, as /metrics reports."""

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
    """While the block runs, record each node's waiting calls, and their maximum in the journal."""
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
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):  # the node may be down, stopped or leaving
            node.calls_waiting = await node.gauge(session, GAUGE) or 0.0
        journal.calls_waiting_max = max(journal.calls_waiting_max, node.calls_waiting)
        await asyncio.sleep(LOOK_SECONDS)
