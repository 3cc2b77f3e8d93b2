"""Deliveries: messages and results that are still to be delivered, found by the instant of their next attempt.

Before an attempt a node claims the delivery, which moves the next attempt to a later instant in a commit. Until then no
other node tries it; if the node dies, the delivery is due again.

Without skipped targets one index scan finds the earliest deliveries. With skipped targets that scan would read their
whole backlogs, so the query goes from target to target by the index (target_key, wake_at).
"""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, Subquery, bindparam, delete, distinct, func, not_, select, true, update
from sqlalchemy.dialects import postgresql, sqlite

from flowserver.machine.deliveries.notifications import ContentFormat, Notification, Published
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.store.schema.queue_tables import deliveries
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import execute_many, fetch_all, without_nulls
from flowserver.store.sql.unreadable import checks_of, damage_in, is_text, legible

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A message or result for a destination: tried at once, then as its strategy says."""

    delivery_id: str
    """Inserting the same id again has no effect."""
    target: str
    """The destination as text; `destinations` parses it."""
    message_id: str
    body: str
    tag: str | None = None
    strategy: Strategy = Strategy.EXPONENTIAL_DECAY
    content_format: ContentFormat = ContentFormat.SIMPLIFIED
    topic: str = ""
    """Topic of the subscription; "" for an invocation's result."""
    subscription: str = ""
    invocation_key: str | None = None
    """The invocation whose result it is; None for a message."""
    traceparent: str | None = None
    """The span that published the message or submitted the invocation, if that was traced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(NewDelivery):
    """A claimed delivery; `attempt` includes this attempt. Instants in ms."""

    attempt: int
    wake_at: int
    """When it is tried again if the result of this attempt is not recorded."""
    created_at: int

    @property
    def notification(self) -> Notification:
        """What its destination gets."""
        published = Published(self.topic, self.subscription, self.message_id, self.body, self.tag, self.created_at)
        return Notification(self.delivery_id, published, self.content_format, self.attempt, self.traceparent)


def target_key(target: str) -> str:
    """A digest of the target for indexes: targets have any length, index keys do not."""
    return sha256(target.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def insert_deliveries(connection: Connection, new: Sequence[NewDelivery], now_ms: int) -> None:
    """Insert deliveries that are due at once; existing ones stay as they are."""
    rows = [
        {
            **asdict(each),
            "target_key": target_key(each.target),
            "attempt": 0,
            "wake_at": now_ms,
            "created_at": now_ms,
        }
        for each in new
    ]
    execute_many(connection, _INSERT[connection.dialect.name], without_nulls(rows, "traceparent"))


def claim_deliveries(
    connection: Connection,
    now_ms: int,
    until_ms: int,
    limit: int,
    under_way: Mapping[str, int],
    per_target_max: int,
    *,
    failing: Collection[str] = (),
    failing_max: int = 0,
) -> list[Delivery]:
    """Claim up to `limit` due deliveries, earliest first; they are due again at `until_ms`.

    A target gets at most `per_target_max` deliveries, including those `under_way` to it; the `failing` targets together
    get at most `failing_max`. A damaged row is claimed but not returned: it stays in the table, and the log names it.
    """
    skipped = {target for target, count in under_way.items() if count >= per_target_max}
    if failing_max <= 0:
        skipped.update(failing)
    if skipped:
        parameters = {
            "b_now": now_ms,
            "b_limit": limit,
            "b_each": per_target_max,
            "skipped": _keys(connection, skipped),
        }
        found = connection.execute(_DUE_NOT_SKIPPED[connection.dialect.name], parameters)
    else:
        found = connection.execute(_DUE, {"b_now": now_ms, "b_limit": limit})
    ids = _picked(found.all(), Counter(under_way), per_target_max, frozenset(failing), failing_max)
    if not ids:
        return []
    rows = connection.execute(_CLAIM, {"listed": texts(connection, ids), "b_until": until_ms}).all()
    claimed = [delivery for row in rows if (delivery := _delivery(row)) is not None]
    return sorted(claimed, key=lambda each: (each.created_at, each.delivery_id))


def _picked(
    found: Sequence[Row[Any]], under_way: Counter[str], per_target_max: int, failing: frozenset[str], failing_max: int
) -> list[str]:
    picked: list[str] = []
    for row in found:
        is_failing = row.target in failing
        if not is_text(row.delivery_id) or under_way[row.target] >= per_target_max or (is_failing and failing_max <= 0):
            continue
        under_way[row.target] += 1
        failing_max -= is_failing
        picked.append(row.delivery_id)
    return picked


def next_delivery_at(connection: Connection, skipped: Collection[str] = ()) -> int | None:
    """The earliest instant (ms) at which a delivery is due, without deliveries to the targets `skipped`."""
    if skipped:
        rows = fetch_all(connection, _NEXT_NOT_SKIPPED, {"skipped": _keys(connection, skipped)})
    else:
        rows = fetch_all(connection, _NEXT, {})
    return next((wake_at for (wake_at,) in rows if isinstance(wake_at, int)), None)


def delete_delivery(connection: Connection, delivery_id: str) -> bool:
    """Delete a delivery that has arrived or was given up; False if it no longer exists."""
    return execute_many(connection, _DELETE, [{"b_id": delivery_id}]) > 0


def put_off_delivery(connection: Connection, delivery: Delivery, wake_at: int, *, counts: bool = True) -> None:
    """Try it again at `wake_at` (ms), unless another node has claimed it since. The attempt is counted if `counts`."""
    row = {"b_id": delivery.delivery_id, "b_attempt": delivery.attempt, "wake_at": wake_at}
    execute_many(connection, _PUT_OFF, [row | {"attempt": delivery.attempt - (not counts)}])


def delete_deliveries_of(connection: Connection, topic: str, subscription: str | None, limit: int) -> int:
    """Delete up to `limit` deliveries for a subscription, or for all of a topic; returns how many."""
    query = select(deliveries.c.delivery_id).where(deliveries.c.topic == topic)
    if subscription is not None:
        query = query.where(deliveries.c.subscription == subscription)
    dropped = delete(deliveries).where(deliveries.c.delivery_id.in_(query.limit(limit)))
    return connection.execute(dropped).rowcount


def count_undelivered_messages(connection: Connection, topic: str) -> int:
    """How many messages of a topic have not reached all of their subscribers."""
    query = select(func.count(distinct(deliveries.c.message_id))).where(deliveries.c.topic == topic)
    return connection.execute(query).scalar_one()


_COLUMNS = [column for column in deliveries.c if column is not deliveries.c.target_key]
_CHECKS = checks_of(_COLUMNS)


def _delivery(row: Row[Any]) -> Delivery | None:
    damage = damage_in(row, _CHECKS)
    if damage is None:
        try:
            strategy, content_format = Strategy(row.strategy), ContentFormat(row.content_format)
            return Delivery(**{**row._mapping, "strategy": strategy, "content_format": content_format})
        except ValueError as error:
            damage = str(error)
    log.error("delivery %s is damaged and cannot be tried: %s", legible(row.delivery_id), damage)
    return None


def _keys(connection: Connection, targets: Collection[str]) -> Any:
    return texts(connection, sorted(map(target_key, targets)))


_INSERT: Any = {
    "sqlite": sqlite.insert(deliveries).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(deliveries).on_conflict_do_nothing(),
}


def _not_skipped() -> Subquery:
    """The targets that are not skipped, each with the first instant at which a delivery to it is due."""
    key = deliveries.c.target_key
    found = select(func.min(key).label("target_key")).cte("targets", recursive=True)
    following = select(func.min(key)).where(key > found.c.target_key).scalar_subquery()
    found = found.union_all(select(following).where(found.c.target_key.is_not(None)))
    first = select(func.min(deliveries.c.wake_at)).where(key == found.c.target_key).scalar_subquery()
    wanted = select(found.c.target_key, first.label("first_at")).where(found.c.target_key.is_not(None))
    return wanted.where(not_(among(found.c.target_key, bindparam("skipped")))).subquery("not_skipped")


def _due_not_skipped() -> dict[str, Any]:
    """The query for the first due deliveries to those targets, up to `b_each` for each, by dialect."""
    not_skipped = _not_skipped()
    chosen = select(not_skipped.c.target_key).where(not_skipped.c.first_at <= bindparam("b_now"))
    targets = chosen.order_by(not_skipped.c.first_at).limit(bindparam("b_limit")).subquery("chosen")
    own = deliveries.alias("own")
    few = select(own.c.delivery_id).where(own.c.target_key == targets.c.target_key, own.c.wake_at <= bindparam("b_now"))
    few = few.order_by(own.c.wake_at).limit(bindparam("b_each"))
    lateral = few.correlate(targets).lateral("few")
    listed = targets.join(lateral, true()).join(deliveries, deliveries.c.delivery_id == lateral.c.delivery_id)
    return {
        "sqlite": _DUE.join_from(targets, deliveries, deliveries.c.delivery_id.in_(few.correlate(targets))),
        "postgresql": _DUE.select_from(listed),
    }


_DUE = (
    select(deliveries.c.delivery_id, deliveries.c.target)
    .where(deliveries.c.wake_at <= bindparam("b_now"))
    .order_by(deliveries.c.wake_at)
    .limit(bindparam("b_limit"))
    # Rows that another node is claiming are skipped (PostgreSQL; SQLite has one writer).
    .with_for_update(skip_locked=True, of=deliveries)
)
_DUE_NOT_SKIPPED = _due_not_skipped()
_CLAIM = (
    update(deliveries)
    .where(among(deliveries.c.delivery_id, bindparam("listed")))
    .values(attempt=deliveries.c.attempt + 1, wake_at=bindparam("b_until"))
    .returning(*_COLUMNS)
)
_NEXT = select(func.min(deliveries.c.wake_at))
_NEXT_NOT_SKIPPED = select(func.min(_not_skipped().c.first_at))
_DELETE = delete(deliveries).where(deliveries.c.delivery_id == bindparam("b_id"))
_PUT_OFF = update(deliveries).where(
    deliveries.c.delivery_id == bindparam("b_id"), deliveries.c.attempt == bindparam("b_attempt")
)
