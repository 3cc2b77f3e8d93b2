"""How deep queues and topics are, in lists: counts with a bound, read from indexes only."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from flowserver.store.schema.queue_tables import deliveries, queue_messages
from flowserver.store.sql.bounded_counts import Count, count_up_to

DEPTH_MAX: Final = 1_000
"""A count in a list ends here."""

message = queue_messages.c


@dataclass(frozen=True, slots=True)
class Depth:
    """The messages of a queue in any state, some of which may just have expired; `oldest_at` (ms) is None for none."""

    messages: Count
    oldest_at: int | None


def depths_of_queues(connection: Connection, names: Iterable[str]) -> dict[str, Depth]:
    """The depth of each queue."""
    return {name: _depth(connection, name) for name in names}


def _depth(connection: Connection, name: str) -> Depth:
    ids = select(message.message_id).where(message.queue == name).order_by(message.queue, message.message_id)
    found = count_up_to(connection, ids, DEPTH_MAX)
    if not found.count:
        return Depth(found, None)
    first = select(message.enqueued_at).where(message.queue == name).order_by(message.queue, message.message_id)
    return Depth(found, connection.execute(first.limit(1)).scalar_one_or_none())


def undelivered_of_topics(connection: Connection, names: Iterable[str]) -> dict[str, Count]:
    """How many deliveries of each topic have not arrived."""
    topic = deliveries.c.topic
    order = topic, deliveries.c.subscription
    return {
        name: count_up_to(connection, select(topic).where(topic == name).order_by(*order), DEPTH_MAX) for name in names
    }
