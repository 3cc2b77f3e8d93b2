"""How deep queues and topics are, read from indexes only: in lists, with a bound, and for metrics."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, TextClause, func, select

from flowserver.store.schema.queue_tables import IS_READY, NOT_READY, deliveries, queue_messages, queues
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
    return Depth(found, _oldest_at(connection, name) if found.count else None)


@dataclass(frozen=True, slots=True)
class States:
    """The messages of a queue by their state; expired ones count until they are deleted, within a minute or so."""

    queue: str
    ready: int
    hidden: int
    """Received, or delayed."""
    oldest_at: int | None
    """When (ms) the oldest message was sent; None without a message."""


def states_of_queues(connection: Connection, queues_max: int) -> list[States]:
    """The messages of queues, the first by name, counted without a bound: about 30 ms for a million."""
    names = connection.execute(select(queues.c.name).order_by(queues.c.name).limit(queues_max)).scalars().all()
    ready, hidden = (_counted(connection, where) for where in (IS_READY, NOT_READY))
    return [States(name, ready.get(name, 0), hidden.get(name, 0), _oldest_at(connection, name)) for name in names]


def _counted(connection: Connection, where: TextClause) -> dict[str, int]:
    query = select(message.queue, func.count()).where(where).group_by(message.queue)
    return {row[0]: row[1] for row in connection.execute(query)}


def _oldest_at(connection: Connection, name: str) -> int | None:
    """Ids rise with time, so the first message by its id is the oldest."""
    first = select(message.enqueued_at).where(message.queue == name).order_by(message.queue, message.message_id)
    found: int | None = connection.execute(first.limit(1)).scalar_one_or_none()
    return found


def undelivered_of_topics(connection: Connection, names: Iterable[str]) -> dict[str, Count]:
    """How many deliveries of each topic have not arrived."""
    topic = deliveries.c.topic
    order = topic, deliveries.c.subscription
    return {
        name: count_up_to(connection, select(topic).where(topic == name).order_by(*order), DEPTH_MAX) for name in names
    }
