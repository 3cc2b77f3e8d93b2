"""Executions that steps have started: what a start must know of the parent, and which are to be stopped.

An owned sub-flow runs only while its owner, one wait of its parent, lasts. The commit that ends the wait marks the row
(`stop_due`), and the engine stops the execution after that commit. A redrive takes the mark away.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Text, bindparam, cast, or_, select, true, update

from flowserver.store.executions.new_executions import StartingStep
from flowserver.store.executions.stored_execution import Parent
from flowserver.store.schema.tables import NOT_STOPPED, STOP_DUE, SUB_FLOW, TASK, executions, scopes
from flowserver.store.sql.list_parameter import among, among_pairs, pairs, texts
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import is_text


def parents_of_starts(connection: Connection, steps: Iterable[StartingStep]) -> dict[StartingStep, Parent]:
    """The columns of the executions that these steps start, without the steps that own but no longer wait.

    The scopes of the owners are locked until the transaction ends: a turn that ends such a wait finds the child.
    """
    asked = list(steps)
    if not asked:
        return {}
    ids = {"ids": texts(connection, sorted({step.execution_id for step in asked}))}
    depths = {row.execution_id: row.depth for row in fetch_rows(connection, _DEPTHS, ids)}
    waits = [(step.execution_id, str(step.wait_id)) for step in asked if step.owns]
    rows = fetch_rows(connection, _OWNERS, {**ids, "waits": pairs(waits)}) if waits else ()
    owners = {(row.execution_id, row.wait_id) for row in rows}
    return {
        step: Parent(step.execution_id, step.wait_id if step.owns else None, depths.get(step.execution_id, 0) + 1)
        for step in asked
        if not step.owns or (step.execution_id, step.wait_id) in owners
    }


_DEPTHS = select(executions.c.execution_id, executions.c.depth).where(
    among(executions.c.execution_id, bindparam("ids"))
)
_OWNERS = (
    select(scopes.c.execution_id, scopes.c.wait_id)
    .where(TASK, among(scopes.c.execution_id, bindparam("ids")))
    .where(among_pairs(scopes.c.execution_id, cast(scopes.c.wait_id, Text), bindparam("waits")))
    .with_for_update(read=True)
)


Marked = list[tuple[str, str]]
"""(id of the parent, id of the sub-flow) of each."""


def mark_ownerless(connection: Connection, waits: Sequence[tuple[str, int]]) -> Marked:
    """Mark the running sub-flows that these waits, (execution_id, wait_id), own."""
    ids = [execution_id for execution_id, _ in waits]
    wanted = pairs([(execution_id, str(wait_id)) for execution_id, wait_id in waits])
    return _mark(connection, _OF_WAITS, ids, {"waits": wanted})


def mark_ownerless_of(connection: Connection, parent_ids: Sequence[str]) -> Marked:
    """Mark all running sub-flows that these executions own."""
    return _mark(connection, executions.c.parent_wait.is_not(None), parent_ids, {})


def _mark(connection: Connection, which: Any, parent_ids: Sequence[str], given: dict[str, Any]) -> Marked:
    if not parent_ids:
        return []
    given = {"ids": texts(connection, sorted(set(parent_ids))), **given}
    return [(row.parent_id, row.execution_id) for row in connection.execute(_MARK.where(which), given)]


_OF_WAITS = among_pairs(executions.c.parent_id, cast(executions.c.parent_wait, Text), bindparam("waits"))
_MARK = (
    update(executions)
    .where(SUB_FLOW, among(executions.c.parent_id, bindparam("ids")), NOT_STOPPED)
    .values(stop_due=true())
    .returning(executions.c.parent_id, executions.c.execution_id)
)


def ownerless_sub_flows(connection: Connection, limit: int) -> list[str]:
    """Running executions whose owners no longer wait for them; parked ones too."""
    query = select(executions.c.execution_id).where(STOP_DUE).limit(limit)
    return list(filter(is_text, connection.execute(query).scalars()))


def independent_sub_flows(connection: Connection, execution_id: str, limit: int) -> list[tuple[str, str]]:
    """(flow name, name) of up to `limit` running executions that this one, or an owned sub-flow, has started.

    At most READ_MAX executions are read for each level.
    """
    found: list[tuple[str, str]] = []
    above = [execution_id]
    while above:
        given = {"ids": texts(connection, above)}
        rows = connection.execute(_BELOW.limit(READ_MAX), given).all()
        found += [(row.flow_name, row.name) for row in rows if row.parent_wait is None]
        above = [row.execution_id for row in rows if row.parent_wait is not None and is_text(row.execution_id)]
    return found[:limit]


READ_MAX: Final = 1_000
_BELOW = select(executions.c.execution_id, executions.c.flow_name, executions.c.name, executions.c.parent_wait).where(
    SUB_FLOW,
    among(executions.c.parent_id, bindparam("ids")),
    or_(NOT_STOPPED, executions.c.parent_wait.is_not(None)),  # what it owns may have been stopped already
)


def is_ownerless(connection: Connection, execution_id: str) -> bool:
    """Whether the execution runs and is still to be stopped."""
    return bool(fetch_rows(connection, _IS_OWNERLESS, {"b_id": execution_id}))


_IS_OWNERLESS = select(executions.c.execution_id).where(executions.c.execution_id == bindparam("b_id"), STOP_DUE)
