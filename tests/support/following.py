"""Events of an execution as they happen, as objects."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import msgspec

from flowserver.machine.events import Event
from flowserver.operations.history_search import PlacedEvent
from flowserver.operations.operations import Operations

_EVENTS = msgspec.json.Decoder(list[Event])


def encode(events: Iterator[PlacedEvent]) -> list[bytes]:
    """One piece of all."""
    return [msgspec.json.encode([placed.event for placed in events])]


async def follow(operations: Operations, flow: str, name: str, *, after_event_id: int = 0) -> AsyncIterator[Event]:
    """The events of the execution after that one, up to its last."""
    row = await operations.executions.describe(flow, name)
    pages = operations.live_histories.follow(row.execution_id, after_event_id=after_event_id, encode=encode)
    async with aclosing(pages):
        async for page in pages:
            for piece in page.pieces:
                for event in _EVENTS.decode(piece):
                    yield event
