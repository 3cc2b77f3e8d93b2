"""Executions that steps have started: what a start must know of the parent."""

from collections.abc import Iterable

from sqlalchemy import Connection, Text, bindparam, cast, select

from flowserver.store.executions.new_executions import StartingStep
from flowserver.store.executions.stored_execution import Parent
from flowserver.store.schema.tables import TASK, executions, scopes
from flowserver.store.sql.list_parameter import among, among_pairs, pairs, texts
from flowserver.store.sql.prepared import fetch_rows


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
