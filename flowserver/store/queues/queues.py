"""Queues and their attributes. `messages` has what they hold."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select, update

from flowserver.store.schema.queue_tables import queues
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import rows_with_texts
from flowserver.store.sql.upserts import insert_of


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A queue and the defaults of its messages. Instants in ms."""

    name: str
    delay_seconds: int
    message_bytes_max: int
    retention_seconds: int
    visibility_seconds: int
    polling_seconds: int
    is_logged: bool
    created_at: int
    modified_at: int


def insert_queue(connection: Connection, row: QueueRow) -> bool:
    """Create a queue; False if the name is taken."""
    statement = insert_of(connection)(queues).values(**asdict(row))
    added = statement.on_conflict_do_nothing().returning(queues.c.name)
    return connection.execute(added).one_or_none() is not None


def find_queue(connection: Connection, name: str) -> QueueRow | None:
    """The queue with that name."""
    rows = fetch_rows(connection, _FIND, {"names": texts(connection, [name])})
    return _queue(rows[0]) if rows else None


def hold_queues(connection: Connection, names: Collection[str]) -> dict[str, QueueRow]:
    """The queues with those names, by name, protected from deletion until the transaction ends.

    Other transactions may still change their attributes or hold them too (PostgreSQL; SQLite has one writer).
    """
    rows = fetch_rows(connection, _HOLD, {"names": texts(connection, sorted(names))})
    return {row.name: _queue(row) for row in rows}


def list_queues(connection: Connection, *, prefix: str, from_name: str, limit: int) -> list[QueueRow]:
    """Queues whose names begin with `prefix`, by name, from `from_name` on."""
    # Not LIKE, which ignores case on SQLite. Both the prefix and `from_name` are searched by the key.
    named_so = func.substr(queues.c.name, 1, len(prefix)) == prefix
    page = select(queues).where(queues.c.name >= max(prefix, from_name), named_so).order_by(queues.c.name)
    return [_queue(row) for row in rows_with_texts(connection, page, limit, "name")]


def update_queue(connection: Connection, name: str, changed: dict[str, Any], now_ms: int) -> bool:
    """Set attributes, by the names of their columns; False if there is no such queue."""
    statement = update(queues).where(queues.c.name == name).values(**changed, modified_at=now_ms)
    return connection.execute(statement).rowcount > 0


def delete_queue(connection: Connection, name: str) -> bool:
    """Delete the queue but not its messages; False if there is no such queue."""
    return connection.execute(delete(queues).where(queues.c.name == name)).rowcount > 0


def _queue(row: Any) -> QueueRow:
    fields = row._asdict()
    return QueueRow(**{**fields, "is_logged": bool(fields["is_logged"])})


_FIND = select(queues).where(among(queues.c.name, bindparam("names")))
# Every transaction locks in this order, so that no two can deadlock.
_HOLD = _FIND.order_by(queues.c.name).with_for_update(read=True, key_share=True)
