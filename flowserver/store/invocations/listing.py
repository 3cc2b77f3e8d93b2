"""Pages of asynchronous invocations, and the functions that have any.

A page is read from an index. Filters without an index (a prefix of ids, a qualifier) are checked on at most SCANNED_MAX
invocations per page; the page may then end early, with a cursor for the next one.
"""

import logging
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, LargeBinary, Row, Select, and_, func, literal, null, or_, select, tuple_

from flowserver.machine.invocations.states import InvocationStatus
from flowserver.store.cluster.nodes import PARKED_HOLDER
from flowserver.store.invocations.rows import InvocationDamaged, InvocationRow, read_invocation
from flowserver.store.schema.invocation_tables import HAS_NODE, invocations

log = logging.getLogger(__name__)

SCANNED_MAX = 10_000

Position = tuple[int, str]
"""Where a page ends: `created_at` and key of the last invocation that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationFilter:
    """Which invocations of a function to list, and in what order. Instants in ms, inclusive."""

    service: str
    function: str
    qualifiers: tuple[str, ...] = ()
    """Any of these; all if empty."""
    status: str | None = None
    id_prefix: str = ""
    created_from: int | None = None
    created_to: int | None = None
    oldest_first: bool = False

    @property
    def needs_scan(self) -> bool:
        """Whether it has a condition that no index answers."""
        return bool(self.id_prefix or self.qualifiers)

    def fits(self, row: Row[Any]) -> bool:
        """Whether a row from the index meets the other conditions."""
        is_named_so = str(row.invocation_id).startswith(self.id_prefix)
        return is_named_so and (not self.qualifiers or row.qualifier in self.qualifiers)


def list_invocations(
    connection: Connection, wanted: InvocationFilter, *, after: Position | None, limit: int, with_payload: bool
) -> tuple[list[InvocationRow], Position | None]:
    """A page of invocations without results, and the cursor of the next page; None after the last.

    Payloads are read only `with_payload`. Damaged invocations are left out and logged.
    """
    scanned_max = SCANNED_MAX if wanted.needs_scan else limit
    scanned = connection.execute(_window(wanted, after).limit(scanned_max + 1)).all()
    found = [row for row in scanned[:scanned_max] if wanted.fits(row)][:limit]
    rows = _read(connection, [row.invocation_key for row in found], with_payload=with_payload)
    if len(found) == limit:
        end = found[-1] if found[-1] is not scanned[-1] else None
    else:
        end = scanned[scanned_max - 1] if len(scanned) > scanned_max else None
    return rows, None if end is None else (end.created_at, end.invocation_key)


def list_functions_invoked(
    connection: Connection, *, after: tuple[str, str] | None, limit: int
) -> list[tuple[str, str]]:
    """Service and name of the functions that have invocations, after `after`; one index search for each."""
    key = tuple_(invocations.c.service, invocations.c.function)
    query = select(invocations.c.service, invocations.c.function).order_by(*key.clauses).limit(1)
    found: list[tuple[str, str]] = []
    while len(found) < limit:
        row = connection.execute(query if after is None else query.where(key > after)).one_or_none()
        if row is None:
            break
        after = (row.service, row.function)
        found.append(after)
    return found


def _window(wanted: InvocationFilter, after: Position | None) -> Select[Any]:
    """The query that an index answers, in order."""
    at, key = invocations.c.created_at, invocations.c.invocation_key
    query = select(at, key, invocations.c.invocation_id, invocations.c.qualifier)
    query = query.where(invocations.c.service == wanted.service, invocations.c.function == wanted.function)
    if wanted.status is not None:
        query = query.where(invocations.c.status == wanted.status)
    if wanted.created_from is not None:
        query = query.where(at >= wanted.created_from)
    if wanted.created_to is not None:
        query = query.where(at <= wanted.created_to)
    if wanted.oldest_first:  # the same index, backwards
        query = query.order_by(at, key.desc())
        return query if after is None else query.where(at >= after[0], or_(at > after[0], key < after[1]))
    query = query.order_by(at.desc(), key)
    return query if after is None else query.where(at <= after[0], or_(at < after[0], key > after[1]))


def _read(connection: Connection, keys: list[str], *, with_payload: bool) -> list[InvocationRow]:
    left_out: dict[str, Any] = {"result": null()}
    if not with_payload:
        left_out["payload"] = literal(b"", LargeBinary)
    columns: list[Any] = [left_out.get(column.name, column).label(column.name) for column in invocations.c]
    rows = connection.execute(select(*columns).where(invocations.c.invocation_key.in_(keys)))
    found: dict[str, InvocationRow] = {}
    for row in rows:
        try:
            found[row.invocation_key] = read_invocation(row)
        except InvocationDamaged as damaged:
            log.warning("%s; it is not listed", damaged)
    return [found[key] for key in keys if key in found]


def count_waiting(connection: Connection) -> int:
    """How many invocations wait in FIFO queues of any node, without parked ones."""
    waiting = and_(invocations.c.status == str(InvocationStatus.ENQUEUED), invocations.c.node_id != PARKED_HOLDER)
    return connection.execute(select(func.count()).select_from(invocations).where(HAS_NODE, waiting)).scalar_one()
