"""Since when the oldest work waits, read through indexes that other reads need."""

from typing import Final

from sqlalchemy import Connection, func, select

from flowserver.machine.state import Status, WaitKind
from flowserver.store.executions.waiting_tasks import LOOKED_UP_MAX, SCANNED_MAX
from flowserver.store.schema.tables import executions, flows, histories, scopes

FLOWS_READ_MAX: Final = 10_000
"""Flows whose oldest running execution is looked up: each takes some microseconds."""


def oldest_start_of_running(connection: Connection) -> int | None:
    """When the oldest running execution was started (ms), None without one: the first of each flow, by its index."""
    header = executions.c
    first = (
        select(header.started_at)
        .where(header.flow_id == flows.c.flow_id, header.status == str(Status.RUNNING))
        .order_by(header.flow_id, header.status, header.started_at)
        .limit(1)
        .scalar_subquery()
        .correlate(flows)
    )
    of_flows = select(first.label("started_at")).select_from(flows).limit(FLOWS_READ_MAX).subquery()
    started_at: int | None = connection.execute(select(func.min(of_flows.c.started_at))).scalar_one()
    return started_at


def oldest_entry_of_waiting_tasks(connection: Connection) -> int | None:
    """When the first task began to wait (ms) that still waits for a report with its token; None without one.

    Such tasks have no index: it is the first of LOOKED_UP_MAX in the first SCANNED_MAX scopes. Ids of executions rise
    with time, those of sub-flows apart.
    """
    key = scopes.c.execution_id, scopes.c.scope_id
    some = select(*key, scopes.c.wait, scopes.c.entered_event_id).order_by(*key).limit(SCANNED_MAX).subquery()
    waiting = select(some).where(some.c.wait == str(WaitKind.TOKEN)).limit(LOOKED_UP_MAX).subquery()
    entry = (
        select(histories.c.time)
        .where(
            histories.c.execution_id == waiting.c.execution_id,
            histories.c.last_event_id >= waiting.c.entered_event_id,
        )
        .order_by(histories.c.execution_id, histories.c.last_event_id)
        .limit(1)
        .scalar_subquery()
        .correlate(waiting)
    )
    entries = select(entry.label("entered_at")).select_from(waiting).subquery()
    entered_at: int | None = connection.execute(select(func.min(entries.c.entered_at))).scalar_one()
    return entered_at
