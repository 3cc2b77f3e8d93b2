"""The few executions, tasks, schedules and invocations that a person should look at first."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from flowserver.base.clock import INSTANT_MS_MAX, format_instant
from flowserver.machine.state import Status
from flowserver.store.executions.listing_of_all_flows import list_all_executions
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.executions.shown_executions import ExecutionRow, as_shown, readable
from flowserver.store.executions.waiting_tasks import ScopeKey, list_waiting_tasks
from flowserver.store.invocations.parking import list_parked_invocations
from flowserver.store.overview.counts import LateExecution, schedules
from flowserver.store.overview.throughput import FAILURES
from flowserver.store.schedules.rows import ScheduleDamaged, find_schedule
from flowserver.store.schema.schedule_tables import WAKES
from flowserver.store.schema.tables import PARKED, executions
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.unreadable import is_text, legible

SHOWN_MAX: Final = 5
"""Of each kind."""

READ_MAX: Final = (20, 480)
"""Failures that are read, and how many more if most of those are of deleted flows, which are left out."""

PARKED_READ_MAX: Final = 1_000
"""Parked executions, by flow, of which the newest are shown."""

TASKS_READ_MAX: Final = 50
"""Tasks of the oldest executions, of which those are shown that wait longest."""

TEXT_CHARACTERS_MAX: Final = 300
"""Of the text that explains an error."""

BYTES_MAX: Final = 1_000_000

header = executions.c


class Kind(StrEnum):
    """Why to look at it; in the order in which they are listed."""

    PARKED = "parked"
    LATE = "late"
    OVERDUE_SCHEDULE = "overdueSchedule"
    MISSED_RUN = "missedRun"
    PARKED_INVOCATION = "parkedInvocation"
    WAITING_FOR_REDRIVE = "waitingForRedrive"
    FAILED = "failed"
    TIMED_OUT = "timedOut"
    WAITING_TASK = "waitingTask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """What to look at. `name` is an execution's, or a schedule's or invocation's id; `since` in ms."""

    kind: Kind
    flow_name: str
    name: str
    since: int
    function: str | None = None
    """SERVICE/FUNCTION of an invocation."""
    step: str | None = None
    error: str | None = None
    text: str | None = None
    """Explains the error; cut to TEXT_CHARACTERS_MAX."""


def read_attention(
    connection: Connection,
    late: Sequence[LateExecution],
    *,
    missing: Sequence[tuple[str, str, int]] = (),
    failed_since_ms: int,
    due_before_ms: int,
) -> list[Attention]:
    """SHOWN_MAX of each kind at most. `missing` are schedules with missed runs: flow, name, and when it was found (ms).

    Of executions that failed, are parked or wait for a redrive these are the newest, of all else what waits longest.
    """
    found = [
        *_parked(connection),
        *_late(connection, late),
        *_overdue_schedules(connection, due_before_ms),
        *_missed_runs(connection, missing),
        *_parked_invocations(connection),
        *_waiting_for_redrive(connection),
    ]
    for status in FAILURES:
        found += _failed(connection, status, failed_since_ms)
    return [replace(each, since=_instant(each.since)) for each in [*found, *_waiting_tasks(connection)]]


def _parked(connection: Connection) -> Iterator[Attention]:
    order = header.flow_id, header.started_at.desc(), header.name
    some = select(header.execution_id, header.started_at).where(PARKED).order_by(*order).limit(PARKED_READ_MAX)
    found = some.subquery()
    newest = select(found.c.execution_id).order_by(found.c.started_at.desc(), found.c.execution_id).limit(SHOWN_MAX)
    rows = _rows(connection, [each for each in connection.execute(newest).scalars() if is_text(each)])
    return (_of_execution(Kind.PARKED, row, row.started_at, text=row.parked_error) for row in rows)


def _late(connection: Connection, late: Sequence[LateExecution]) -> Iterator[Attention]:
    first = {each.execution_id: each.due_at for each in late[:SHOWN_MAX]}
    return (_of_execution(Kind.LATE, row, first[row.execution_id]) for row in _rows(connection, list(first)))


def _overdue_schedules(connection: Connection, before_ms: int) -> Iterator[Attention]:
    columns = schedules.c.flow_name, schedules.c.name, schedules.c.wake_at
    query = select(*columns).where(WAKES, schedules.c.wake_at <= before_ms)
    for row in connection.execute(query.order_by(schedules.c.wake_at).limit(SHOWN_MAX)):
        yield Attention(
            kind=Kind.OVERDUE_SCHEDULE,
            flow_name=str(legible(row.flow_name)),
            name=str(legible(row.name)),
            since=row.wake_at,
        )


def _missed_runs(connection: Connection, missing: Sequence[tuple[str, str, int]]) -> Iterator[Attention]:
    for flow_name, name, at in missing[:SHOWN_MAX]:
        with suppress(ScheduleDamaged):
            schedule = find_schedule(connection, flow_name, name)
            if schedule is not None and (last := schedule.memory.last_missed) is not None:
                text = f"the last missed run is that of {format_instant(last.at)} ({last.reason})"
                yield Attention(kind=Kind.MISSED_RUN, flow_name=flow_name, name=name, since=at, text=text)


def _parked_invocations(connection: Connection) -> Iterator[Attention]:
    for each in list_parked_invocations(connection, "", SHOWN_MAX):
        service = f"{each.service}.{each.qualifier}" if each.qualifier else each.service
        yield Attention(
            kind=Kind.PARKED_INVOCATION,
            flow_name=each.flow_name,
            name=each.invocation_id,
            since=each.created_at,
            function=f"{service}/{each.function}",
            text=_cut(each.parked_error),
        )


def _waiting_for_redrive(connection: Connection) -> Iterator[Attention]:
    wanted = ExecutionFilter(waiting_for_redrive=True)
    page = list_all_executions(connection, wanted, after=None, limit=SHOWN_MAX, bytes_max=BYTES_MAX)
    return (_of_execution(Kind.WAITING_FOR_REDRIVE, row, row.started_at) for row in page.rows)


def _failed(connection: Connection, status: Status, since_ms: int) -> Iterator[Attention]:
    wanted = ExecutionFilter(status=status, ended_from=since_ms)
    rows: list[ExecutionRow] = []
    after = None
    for limit in READ_MAX:
        page = list_all_executions(connection, wanted, after=after, limit=limit, bytes_max=BYTES_MAX)
        rows += page.rows
        after = page.following
        if len(rows) >= SHOWN_MAX or after is None:
            break
    kind = Kind.FAILED if status is Status.FAILED else Kind.TIMED_OUT
    return (_of_execution(kind, row, row.stopped_at or row.started_at) for row in rows[:SHOWN_MAX])


def _waiting_tasks(connection: Connection) -> Iterator[Attention]:
    tasks = list_waiting_tasks(connection, None, None, ScopeKey("", 0), TASKS_READ_MAX).tasks
    for task in sorted(tasks, key=lambda each: _instant(each.entered_at))[:SHOWN_MAX]:
        yield Attention(
            kind=Kind.WAITING_TASK,
            flow_name=task.flow_name,
            name=task.execution_name,
            since=task.entered_at,
            step=task.step_name,
        )


def _rows(connection: Connection, execution_ids: list[str]) -> Iterator[ExecutionRow]:
    """The executions in this order, without documents."""
    if not execution_ids:
        return
    query = readable(documents=False).where(among(header.execution_id, bindparam("ids")))
    rows: dict[str, Any] = {
        row.execution_id: row for row in connection.execute(query, {"ids": texts(connection, execution_ids)})
    }
    yield from (as_shown(rows[each]._asdict()) for each in execution_ids if each in rows)


def _of_execution(kind: Kind, row: ExecutionRow, since: int, text: str | None = None) -> Attention:
    return Attention(
        kind=kind,
        flow_name=row.flow_name,
        name=row.name,
        since=since,
        step=row.failed_step,
        error=row.error,
        text=_cut(text or row.cause),
    )


def _instant(value: Any) -> int:
    """The instant (ms); 0 for a damaged one."""
    return value if isinstance(value, int) and 0 <= value <= INSTANT_MS_MAX else 0


def _cut(text: str | None) -> str | None:
    return text[:TEXT_CHARACTERS_MAX] if text else None
