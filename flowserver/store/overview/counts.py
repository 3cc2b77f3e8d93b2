"""Counts for an overview, each read in order from an index and only up to COUNTED_MAX.

The statements name the order of their index: so no planner reads a table instead, hoping to find enough soon.
"""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, func, select

from flowserver.machine.state import Status, WaitKind
from flowserver.store.cluster.nodes import PARKED_HOLDER
from flowserver.store.executions.due import CAN_CONTINUE
from flowserver.store.executions.waiting_tasks import SCANNED_MAX
from flowserver.store.schema import schedule_tables
from flowserver.store.schema.invocation_tables import HAS_NODE, invocations
from flowserver.store.schema.tables import (
    PARKED,
    RUNNING,
    UNSUCCESSFUL,
    WAITING_FOR_REDRIVE,
    WAKES,
    executions,
    flows,
    scopes,
)
from flowserver.store.sql.bounded_counts import Count, count_up_to
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.unreadable import is_text

COUNTED_MAX: Final = 10_000
"""A count ends here: that takes some milliseconds, and no person needs a larger number to be exact."""

LATE_READ_MAX: Final = 1_000
"""Due waits, and due deadlines, that are looked at: with more, all are late."""

QUARTER_MS: Final = 900_000
"""Failures are counted by quarters of an hour: in every time zone a day begins with one."""

schedules = schedule_tables.schedules
header = executions.c


@dataclass(frozen=True, slots=True)
class LateExecution:
    """An execution with work that is overdue, and since when it is due (ms)."""

    execution_id: str
    due_at: int


@dataclass(frozen=True, slots=True)
class FailuresByQuarter:
    """Ends of one status since `since_ms`, by the instant (ms) at which a quarter of an hour begins.

    Executions of deleted flows are left out. `complete_from` is the earliest instant from which all are counted.
    """

    counts: dict[int, int]
    complete_from: int

    def since(self, instant_ms: int) -> Count:
        """How many there were from the beginning of that quarter of an hour."""
        first = instant_ms - instant_ms % QUARTER_MS
        found = sum(count for quarter, count in self.counts.items() if quarter >= first)
        return Count(min(found, COUNTED_MAX), first < self.complete_from)


def count_rows(connection: Connection, query: Select[Any]) -> Count:
    """How many rows an ordered query has, COUNTED_MAX at most."""
    return count_up_to(connection, query, COUNTED_MAX)


def count_running(connection: Connection) -> Count:
    """Executions that have not ended."""
    return count_rows(connection, select(header.deadline_at).where(RUNNING).order_by(header.deadline_at))


def count_parked(connection: Connection) -> Count:
    """Running executions that the server cannot continue."""
    order = header.flow_id, header.started_at.desc(), header.name
    return count_rows(connection, select(header.flow_id).where(PARKED).order_by(*order))


def count_waiting_for_redrive(connection: Connection) -> Count:
    """Running executions with failed steps that wait for a redrive."""
    order = header.started_at.desc(), header.execution_id
    return count_rows(connection, select(header.started_at).where(WAITING_FOR_REDRIVE).order_by(*order))


def count_parked_invocations(connection: Connection) -> Count:
    """Asynchronous invocations that the server cannot continue."""
    holder, key = invocations.c.node_id, invocations.c.invocation_key
    return count_rows(connection, select(key).where(HAS_NODE, holder == PARKED_HOLDER).order_by(holder, key))


def count_flows(connection: Connection) -> Count:
    """Flows that are not deleted."""
    return count_rows(connection, select(flows.c.name).where(flows.c.deleted_at.is_(None)).order_by(flows.c.name))


def count_overdue_schedules(connection: Connection, before_ms: int) -> Count:
    """Schedules whose turn has been due since that instant, or longer."""
    at = schedules.c.wake_at
    return count_rows(connection, select(at).where(schedule_tables.WAKES, at <= before_ms).order_by(at))


def count_waiting_tasks(connection: Connection) -> Count:
    """Tasks that wait for a report with their token, among the first SCANNED_MAX scopes: they have no index."""
    order = scopes.c.execution_id, scopes.c.scope_id
    some = select(scopes.c.wait).order_by(*order).limit(SCANNED_MAX + 1).subquery()
    waiting = func.count().filter(some.c.wait == str(WaitKind.TOKEN))
    scanned, found = connection.execute(select(func.count(), waiting).select_from(some)).one()
    return Count(found, scanned > SCANNED_MAX)


def late_executions(connection: Connection, before_ms: int) -> tuple[list[LateExecution], bool]:
    """Executions whose wait or deadline was due before that instant, and whether there may be more.

    Those come first that are due for longest. A parked execution is late only after its deadline: its waits stay as
    they are.
    """
    query = select(scopes.c.execution_id, scopes.c.wake_at).where(WAKES, scopes.c.wake_at <= before_ms)
    waits = connection.execute(query.order_by(scopes.c.wake_at).limit(LATE_READ_MAX)).all()
    query = select(header.execution_id, header.deadline_at).where(RUNNING, header.deadline_at <= before_ms)
    ends = connection.execute(query.order_by(header.deadline_at).limit(LATE_READ_MAX)).all()
    ids = sorted({row.execution_id for row in waits if is_text(row.execution_id)})
    query = select(header.execution_id).where(among(header.execution_id, bindparam("ids")), CAN_CONTINUE)
    going_on = set(connection.execute(query, {"ids": texts(connection, ids)}).scalars()) if ids else set()
    due = [(at, execution_id) for execution_id, at in waits if execution_id in going_on]
    due += [(at, execution_id) for execution_id, at in ends if is_text(execution_id)]
    first: dict[str, int] = {}
    for at, execution_id in sorted(due):
        first.setdefault(execution_id, at)
    found = [LateExecution(execution_id, at) for execution_id, at in first.items()]
    return found, LATE_READ_MAX in (len(waits), len(ends))


def failures_by_quarter(connection: Connection, status: Status, since_ms: int, now_ms: int) -> FailuresByQuarter:
    """The newest COUNTED_MAX ends of a status without success since the quarter of an hour of an instant."""
    at, since_ms = header.stopped_at, since_ms - since_ms % QUARTER_MS
    ended = (
        select(at, header.flow_id)
        .where(UNSUCCESSFUL, header.status == str(status), at >= since_ms, at <= now_ms)
        .order_by(at.desc(), header.execution_id)
        .limit(COUNTED_MAX + 1)
        .subquery()
    )
    quarter = (ended.c.stopped_at // QUARTER_MS).label("quarter")
    query = select(quarter, ended.c.flow_id, func.count().label("found"), func.min(ended.c.stopped_at).label("first"))
    rows = connection.execute(query.group_by(quarter, ended.c.flow_id)).all()
    deleted = deleted_among(connection, {row.flow_id for row in rows if is_text(row.flow_id)})
    counts: dict[int, int] = {}
    for row in rows:
        if row.flow_id not in deleted:
            counts[row.quarter * QUARTER_MS] = counts.get(row.quarter * QUARTER_MS, 0) + row.found
    is_cut = sum(row.found for row in rows) > COUNTED_MAX
    return FailuresByQuarter(counts, min(row.first for row in rows) + 1 if is_cut else since_ms)


def deleted_among(connection: Connection, flow_ids: set[str]) -> set[str]:
    """Those of the flows that are deleted: lists do not have their executions."""
    listed = among(flows.c.flow_id, bindparam("ids"))
    query = select(flows.c.flow_id).where(listed, flows.c.deleted_at.is_not(None))
    return set(connection.execute(query, {"ids": texts(connection, sorted(flow_ids))}).scalars()) if flow_ids else set()
