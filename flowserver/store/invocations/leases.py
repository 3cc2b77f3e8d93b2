"""Leases of asynchronous invocations, and the queries for those that are due or orphaned.

Every query has a limit and uses a partial index that holds only the rows concerned. A node may hold very many waiting
invocations, so no query reads all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, and_, bindparam, select, update

from flowserver.store.cluster.nodes import NO_NODE, PARKED_HOLDER
from flowserver.store.schema.invocation_tables import (
    HAS_NODE,
    PAUSING,
    invocations,
)
from flowserver.store.schema.tables import nodes
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.unreadable import is_text


@dataclass(frozen=True, slots=True)
class HeldInvocation:
    """An invocation that a node holds: what its function's FIFO queue needs. Equality ignores the status."""

    invocation_key: str
    service: str
    qualifier: str
    function: str
    status: str = field(compare=False)

    @property
    def called(self) -> tuple[str, str, str]:
        """Service, qualifier and function, the key of its function in the registry."""
        return self.service, self.qualifier, self.function

    @property
    def is_legible(self) -> bool:
        """Whether the names of its function are valid text, so that the function can be looked up."""
        return all(map(is_text, self.called))


HELD = (
    invocations.c.invocation_key,
    invocations.c.service,
    invocations.c.qualifier,
    invocations.c.function,
    invocations.c.status,
)
"""The columns of a `HeldInvocation`."""


def invocations_of_node(connection: Connection, node_id: str, after: str, limit: int) -> list[HeldInvocation]:
    """The invocations that a node holds, by key, after `after`."""
    key = invocations.c.invocation_key
    query = select(*HELD).where(HAS_NODE, invocations.c.node_id == node_id, key > after).order_by(key).limit(limit)
    return [HeldInvocation(*row) for row in connection.execute(query) if is_text(row[0])]


def orphaned_invocations(connection: Connection, limit: int, *, lock: bool = False) -> list[HeldInvocation]:
    """Invocations that no registered node holds. With `lock` they are locked, and rows locked elsewhere are skipped."""
    gone = _gone(connection)
    if not gone:
        return []
    holder, key = invocations.c.node_id, invocations.c.invocation_key
    of_no_node = and_(holder.not_in(select(nodes.c.node_id)), holder != PARKED_HOLDER)
    orphaned = holder.in_(gone) if all(map(is_text, gone)) else of_no_node
    query = select(*HELD).where(HAS_NODE, orphaned).order_by(holder, key).limit(limit)
    rows = connection.execute(query.with_for_update(skip_locked=True) if lock else query)
    return [HeldInvocation(*row) for row in rows if is_text(row.invocation_key)]


def take_over_invocations(connection: Connection, node_id: str, limit: int) -> list[HeldInvocation]:
    """Lease orphaned invocations to `node_id`; rows that another node has locked are skipped."""
    orphans = orphaned_invocations(connection, limit, lock=True)
    return _lease(connection, node_id, [each.invocation_key for each in orphans])


def take_over_due(connection: Connection, node_id: str, now_ms: int, limit: int) -> list[HeldInvocation]:
    """Lease to `node_id` the invocations whose pause ended by `now_ms`, earliest first."""
    due = (
        select(invocations.c.invocation_key)
        .where(PAUSING, invocations.c.wake_at <= now_ms)
        .order_by(invocations.c.wake_at)
        .limit(limit)
    )
    keys = connection.execute(due.with_for_update(skip_locked=True)).scalars().all()
    return _lease(connection, node_id, list(filter(is_text, keys)))


def next_pause_end(connection: Connection) -> int | None:
    """The earliest end (ms) of a pause; None if no invocation pauses."""
    query = select(invocations.c.wake_at).where(PAUSING).order_by(invocations.c.wake_at).limit(1)
    found = connection.execute(query).scalar_one_or_none()
    return found if isinstance(found, int) else None


def _holders(connection: Connection) -> Iterator[str]:
    """Every `node_id` that holds invocations: one index search for each."""
    holder = invocations.c.node_id
    query = select(holder).where(HAS_NODE).order_by(holder).limit(1)
    found = connection.execute(query).scalar_one_or_none()
    while found is not None:
        yield found
        if not is_text(found):  # damaged; a query cannot name it
            yield from connection.execute(select(holder).where(HAS_NODE).distinct()).scalars()
            return
        found = connection.execute(query.where(holder > found)).scalar_one_or_none()


def _gone(connection: Connection) -> list[str]:
    there = {PARKED_HOLDER, *connection.execute(select(nodes.c.node_id)).scalars()}
    return [holder for holder in _holders(connection) if holder not in there]


def _lease(connection: Connection, node_id: str, keys: list[str]) -> list[HeldInvocation]:
    if not keys:
        return []
    rows = connection.execute(_LEASE, {"listed": texts(connection, keys), "b_node": node_id}).all()
    order = {key: number for number, key in enumerate(keys)}
    return sorted((HeldInvocation(*row) for row in rows), key=lambda each: order[each.invocation_key])


_LISTED = among(invocations.c.invocation_key, bindparam("listed"))
_LEASE = update(invocations).where(_LISTED).values(node_id=bindparam("b_node"), wake_at=None).returning(*HELD)


def release_invocations(connection: Connection, node_id: str, keys: Sequence[str]) -> None:
    """Release these of the node's invocations: any node may take them."""
    own = update(invocations).where(_LISTED, invocations.c.node_id == bindparam("b_node"))
    connection.execute(own.values(node_id=NO_NODE), {"listed": texts(connection, keys), "b_node": node_id})


def release_all_but(connection: Connection, node_id: str, begun: Sequence[str]) -> None:
    """Release all invocations that the node holds except those that it has `begun`."""
    own = update(invocations).where(HAS_NODE, invocations.c.node_id == bindparam("b_node"), ~_LISTED)
    connection.execute(own.values(node_id=NO_NODE), {"listed": texts(connection, begun), "b_node": node_id})
