"""How deep queues and topics are, in lists and for metrics: counts with a bound, read from indexes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, case, func, select

from flowserver.store.schema.queue_tables import IS_READY, NOT_READY, deliveries, queue_messages, queues
from flowserver.store.sql.bounded_counts import Count, count_up_to
from flowserver.store.sql.unreadable import is_text

DEPTH_MAX: Final = 1_000
"""A count in a list ends here."""

QUEUES_COMPARED_MAX: Final = 1_000
"""Queues among which the deepest are sought."""

VISIBLE_MAX: Final = 10_000
HIDDEN_MAX: Final = 1_000
"""Counts of one queue's messages end here; of hidden ones the table is read as well as the index."""

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
    return Depth(found, _oldest_at(connection, name))


@dataclass(frozen=True, slots=True)
class Backlog:
    """A queue's messages by state, counted up to VISIBLE_MAX and HIDDEN_MAX; `oldest_at` (ms) is None for none."""

    queue: str
    visible: int
    inflight: int
    delayed: int
    oldest_at: int | None


def deepest_queues(connection: Connection, now_ms: int, most: int) -> list[Backlog]:
    """The backlogs of the `most` deepest queues, by name; those with more than DEPTH_MAX messages count alike."""
    name = select(queues.c.name).order_by(queues.c.name).limit(QUEUES_COMPARED_MAX).subquery().c.name
    ids = select(message.message_id).where(message.queue == name).order_by(message.queue, message.message_id)
    some = ids.limit(DEPTH_MAX).correlate(name.table).subquery()
    depth = select(func.count()).select_from(some).scalar_subquery().correlate(name.table)
    deepest = select(name).order_by(depth.desc(), name).limit(most)
    names = [each for each in connection.execute(deepest).scalars() if is_text(each)]
    return [_backlog(connection, each, now_ms) for each in sorted(names)]


def _backlog(connection: Connection, name: str, now_ms: int) -> Backlog:
    order = message.queue, message.priority, message.enqueued_at, message.message_id
    ready = select(message.queue).where(IS_READY, message.queue == name).order_by(*order)
    visible = count_up_to(connection, ready, VISIBLE_MAX).count
    hidden = select(message.visible_at, message.dequeue_count).where(NOT_READY, message.queue == name)
    some = hidden.order_by(message.queue, message.visible_at).limit(HIDDEN_MAX).subquery().c
    state = case((some.visible_at <= now_ms, "visible"), (some.dequeue_count > 0, "inflight"), else_="delayed")
    found = {row[0]: row[1] for row in connection.execute(select(state, func.count()).group_by(state))}
    more = found.get("visible", 0)
    return Backlog(
        name,
        min(visible + more, VISIBLE_MAX),
        found.get("inflight", 0),
        found.get("delayed", 0),
        _oldest_at(connection, name),
    )


def _oldest_at(connection: Connection, name: str) -> int | None:
    first = select(message.enqueued_at).where(message.queue == name).order_by(message.queue, message.message_id)
    return connection.execute(first.limit(1)).scalar_one_or_none()


def undelivered_of_topics(connection: Connection, names: Iterable[str]) -> dict[str, Count]:
    """How many deliveries of each topic have not arrived."""
    topic = deliveries.c.topic
    order = topic, deliveries.c.subscription
    return {
        name: count_up_to(connection, select(topic).where(topic == name).order_by(*order), DEPTH_MAX) for name in names
    }
