"""Parked asynchronous invocations: the server could not continue them, and an operator decides what to do.

The functions use only a few columns, so that they work even if the rest of a row cannot be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, func, select, update

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.store.cluster.nodes import PARKED_HOLDER
from flowserver.store.invocations.leases import HELD, HeldInvocation
from flowserver.store.schema.invocation_tables import HAS_NODE, invocations
from flowserver.store.sql.unreadable import is_text, legible


@dataclass(frozen=True, slots=True)
class InvocationHeader:
    """The columns of an invocation that are shown without reading the whole row. `parked_error` is None unless it is
    parked."""

    invocation_key: str
    service: str
    qualifier: str
    function: str
    invocation_id: str
    status: str
    created_at: int
    parked_error: str | None
    flow_name: str
    execution_name: str
    step_name: str
    """The step that submitted it; "" for none."""


def park_invocation(connection: Connection, key: str, node_id: str, error: str) -> bool:
    """Park an invocation that the node holds; False if the node no longer holds it."""
    own = update(invocations).where(invocations.c.invocation_key == key, invocations.c.node_id == node_id)
    return connection.execute(own.values(node_id=PARKED_HOLDER, parked_error=error)).rowcount > 0


def unpark_invocation(
    connection: Connection, service: str, function: str, invocation_id: str, holder: str
) -> HeldInvocation | None:
    """Give a parked invocation to a node; None if the id is unknown or the invocation is not parked."""
    change = update(invocations).where(_named(service, function, invocation_id), invocations.c.node_id == PARKED_HOLDER)
    row = connection.execute(change.values(node_id=holder, parked_error=None).returning(*HELD)).one_or_none()
    return None if row is None else HeldInvocation(*row)


def find_header(connection: Connection, service: str, function: str, invocation_id: str) -> InvocationHeader | None:
    """The function's invocation with that id, parked or not."""
    rows = connection.execute(_HEADER.where(_named(service, function, invocation_id)))
    return next(iter(_headers(rows.all())), None)


def list_parked_invocations(connection: Connection, after: str, limit: int) -> list[InvocationHeader]:
    """Parked invocations by key, after `after`."""
    key = invocations.c.invocation_key
    query = _HEADER.where(HAS_NODE, invocations.c.node_id == PARKED_HOLDER, key > after).order_by(key).limit(limit)
    return _headers(connection.execute(query).all())


def count_parked_invocations(connection: Connection) -> int:
    """How many are parked."""
    query = select(func.count()).select_from(invocations).where(HAS_NODE, invocations.c.node_id == PARKED_HOLDER)
    return connection.execute(query).scalar_one()


def _named(service: str, function: str, invocation_id: str) -> Any:
    columns = invocations.c
    return (columns.service == service) & (columns.function == function) & (columns.invocation_id == invocation_id)


_HEADER = select(
    *(invocations.c[name] for name in InvocationHeader.__slots__),
)


def _headers(rows: Sequence[Any]) -> list[InvocationHeader]:
    """The rows for people to read; a damaged instant is shown as 0."""
    headers = (InvocationHeader(*map(legible, row)) for row in rows if is_text(row.invocation_key))
    return [each if _is_instant(each.created_at) else replace(each, created_at=0) for each in headers]


def _is_instant(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value <= INSTANT_MS_MAX
