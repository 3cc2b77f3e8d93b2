"""Creates deliveries, and waits for their attempts."""

import asyncio
from typing import Any

from sqlalchemy import select

from flowserver.store.queues.deliveries import Delivery, NewDelivery
from flowserver.store.schema.queue_tables import deliveries
from tests.engine.nodes import PATIENCE_SECONDS, Node
from tests.support.clock import ManualClock


async def deliver(node: Node, target: str, *ids: str, **changes: Any) -> None:
    """Create these deliveries, each of its own message."""
    new = [
        NewDelivery(**{"delivery_id": i, "target": target, "message_id": i, "body": f"body {i}", **changes})
        for i in ids
    ]
    await node.engine.committer.write(lambda connection: node.engine.deliveries.deliver_in(connection, new))
    node.engine.deliveries.note_due()


def left(node: Node) -> dict[str, int]:
    """The existing deliveries, with their attempts."""
    with node.database.read() as connection:
        rows = connection.execute(select(deliveries.c.delivery_id, deliveries.c.attempt)).all()
    return {row.delivery_id: row.attempt for row in rows}


async def attempted(node: Node, count: int = 1) -> None:
    """Wait until this many attempts have ended since the call."""
    ended, end = asyncio.Semaphore(0), node.engine.deliveries._end

    def note(delivery: Delivery) -> None:
        end(delivery)
        ended.release()

    node.engine.deliveries._end = note  # type: ignore[method-assign]
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(count):
            await ended.acquire()


async def settled(node: Node) -> dict[str, int]:
    """The same, once no attempt is under way."""
    while tasks := list(node.engine.deliveries._under_way.values()):
        await asyncio.wait(tasks)
        await asyncio.sleep(0)
    return left(node)


def advance(node: Node, clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds=seconds)
    node.engine.deliveries.note_due()
