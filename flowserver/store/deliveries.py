"""Deliveries: what is still to be brought somewhere, found by when it is tried next.

Whoever tries one claims it first, which moves its next attempt on in a commit: nobody else tries it meanwhile, and if
the claimer dies, it is simply due again.
"""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, distinct, func, not_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from flowserver.machine.delivering import ContentFormat, Strategy
from flowserver.machine.notifications import Published
from flowserver.store.among import among, texts
from flowserver.store.damage import checks_of, damage_in, is_text, legible
from flowserver.store.direct import execute_many, fetch_all
from flowserver.store.queue_tables import deliveries

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """Something to be brought to a destination, at once and then as its strategy says."""

    delivery_id: str
    """The same id again is the same delivery."""
    target: str
    """As `machine.destinations` reads it."""
    message_id: str
    body: str
    tag: str | None = None
    strategy: Strategy = Strategy.EXPONENTIAL_DECAY
    content_format: ContentFormat = ContentFormat.SIMPLIFIED
    topic: str = ""
    """The topic and the subscription it is for, if it is for one."""
    subscription: str = ""
    invocation_key: str | None = None
    """The invocation whose result it is, if it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(NewDelivery):
    """A claimed one; `attempt` counts this attempt too. Instants in ms."""

    attempt: int
    wake_at: int
    """When it would be tried again if nobody said what came of this attempt."""
    created_at: int


def published_by(delivery: Delivery) -> Published:
    """What it brings, as its subscriber sees it."""
    return Published(
        delivery.topic, delivery.subscription, delivery.message_id, delivery.body, delivery.tag, delivery.created_at
    )


def insert_deliveries(connection: Connection, new: Sequence[NewDelivery], now_ms: int) -> None:
    """Add deliveries, to be tried at once; those that are there already stay as they are."""
    rows = [{**asdict(each), "attempt": 0, "wake_at": now_ms, "created_at": now_ms} for each in new]
    execute_many(connection, _INSERT[connection.dialect.name], rows)


def claim_deliveries(
    connection: Connection,
    now_ms: int,
    until_ms: int,
    limit: int,
    under_way: Mapping[str, int],
    each_max: int,
    *,
    failing: Collection[str] = (),
    failing_room: int = 0,
) -> list[Delivery]:
    """Take up to `limit` that are due, earliest first: they are due again at `until_ms`.

    To no target more are taken than make, with as many as are `under_way` to it, `each_max`; and to all those of
    `failing` together no more than `failing_room`. A row that makes no sense
    is taken, too, but not returned: it stays, and the log names it.
    """
    full = {target for target, count in under_way.items() if count >= each_max}
    if failing_room <= 0:
        full.update(failing)
    # What another node is just claiming is left to it (PostgreSQL; SQLite has one writer).
    due = _DUE.limit(limit).with_for_update(skip_locked=True)
    found = connection.execute(due, {"b_now": now_ms, "targets": texts(connection, sorted(full))})
    ids = _picked(found.all(), Counter(under_way), each_max, frozenset(failing), failing_room)
    if not ids:
        return []
    rows = connection.execute(_CLAIM, {"listed": texts(connection, ids), "b_until": until_ms}).all()
    claimed = [delivery for row in rows if (delivery := _delivery(row)) is not None]
    return sorted(claimed, key=lambda each: (each.created_at, each.delivery_id))


def _picked(
    found: Sequence[Row[Any]], under_way: Counter[str], each_max: int, failing: frozenset[str], failing_room: int
) -> list[str]:
    picked: list[str] = []
    for row in found:
        is_failing = row.target in failing
        if not is_text(row.delivery_id) or under_way[row.target] >= each_max or (is_failing and failing_room <= 0):
            continue
        under_way[row.target] += 1
        failing_room -= is_failing
        picked.append(row.delivery_id)
    return picked


def next_delivery_at(connection: Connection, except_to: Collection[str] = ()) -> int | None:
    """The earliest instant (ms) at which a delivery is due, but for those to the targets `except_to`."""
    rows = fetch_all(connection, _NEXT, {"targets": texts(connection, sorted(except_to))})
    return next((wake_at for (wake_at,) in rows if isinstance(wake_at, int)), None)


def delete_delivery(connection: Connection, delivery_id: str) -> bool:
    """It has arrived or was given up; False if it was gone."""
    return execute_many(connection, _DELETE, [{"b_id": delivery_id}]) > 0


def put_off_delivery(connection: Connection, delivery: Delivery, wake_at: int) -> None:
    """Try it again at that instant (ms), unless somebody has claimed it since."""
    row = {"b_id": delivery.delivery_id, "b_attempt": delivery.attempt, "wake_at": wake_at}
    execute_many(connection, _PUT_OFF, [row])


def delete_deliveries_of(connection: Connection, topic: str, subscription: str | None, limit: int) -> int:
    """Drop up to `limit` deliveries for a subscription, or for all of a topic; returns how many."""
    query = select(deliveries.c.delivery_id).where(deliveries.c.topic == topic)
    if subscription is not None:
        query = query.where(deliveries.c.subscription == subscription)
    dropped = delete(deliveries).where(deliveries.c.delivery_id.in_(query.limit(limit)))
    return connection.execute(dropped).rowcount


def count_messages(connection: Connection, topic: str) -> int:
    """How many messages of a topic have not reached all of their subscribers."""
    query = select(func.count(distinct(deliveries.c.message_id))).where(deliveries.c.topic == topic)
    return connection.execute(query).scalar_one()


_CHECKS = checks_of(deliveries.c)


def _delivery(row: Row[Any]) -> Delivery | None:
    damage = damage_in(row, _CHECKS)
    if damage is None:
        try:
            strategy, content_format = Strategy(row.strategy), ContentFormat(row.content_format)
            return Delivery(**{**row._mapping, "strategy": strategy, "content_format": content_format})
        except ValueError as error:
            damage = str(error)
    log.error("delivery %s is damaged and cannot be made: %s", legible(row.delivery_id), damage)
    return None


def _to_others(query: Select[Any]) -> Select[Any]:
    return query.where(not_(among(deliveries.c.target, bindparam("targets"))))


_INSERT: Any = {
    "sqlite": sqlite.insert(deliveries).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(deliveries).on_conflict_do_nothing(),
}
_DUE = _to_others(select(deliveries.c.delivery_id, deliveries.c.target)).where(
    deliveries.c.wake_at <= bindparam("b_now")
)
_DUE = _DUE.order_by(deliveries.c.wake_at)
_CLAIM = (
    update(deliveries)
    .where(among(deliveries.c.delivery_id, bindparam("listed")))
    .values(attempt=deliveries.c.attempt + 1, wake_at=bindparam("b_until"))
    .returning(*deliveries.c)
)
_NEXT = _to_others(select(func.min(deliveries.c.wake_at)))
_DELETE = delete(deliveries).where(deliveries.c.delivery_id == bindparam("b_id"))
_PUT_OFF = update(deliveries).where(
    deliveries.c.delivery_id == bindparam("b_id"), deliveries.c.attempt == bindparam("b_attempt")
)
