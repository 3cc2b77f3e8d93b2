"""Executions and histories as readers see them; what is damaged is shown as well as it can be, and fails nobody."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, not_, or_, select, tuple_

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Status
from flowserver.store.damage import addressable, checks_of, damage_in, legible
from flowserver.store.loading import likely_status, stored_status
from flowserver.store.tables import RUNNING, definitions, events, execution_documents, executions

log = logging.getLogger(__name__)

ROWS_AT_ONCE = 16
"""How many events a page of the history reads ahead of its bound; each has some 256 KiB of detail at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRow:
    """An execution as the API shows it; documents are JSON texts, instants in ms."""

    execution_id: str
    flow_id: str
    flow_name: str
    name: str
    status: Status
    started_at: int
    stopped_at: int | None
    input: str
    output: str | None
    error: str | None
    cause: str | None
    parked_error: str | None
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Which executions to list; None means no condition. Instants in ms, inclusive."""

    status: Status | None = None
    started_from: int | None = None
    started_to: int | None = None
    name_prefix: str | None = None
    parked: bool | None = None


def _readable() -> Select[Any]:
    header = executions.c
    return (
        select(
            header.execution_id,
            header.flow_id,
            header.flow_name,
            header.name,
            header.status,
            header.started_at,
            header.stopped_at,
            header.parked_error,
            func.coalesce(execution_documents.c.input, "").label("input"),
            execution_documents.c.output,
            execution_documents.c.error,
            execution_documents.c.cause,
            func.coalesce(definitions.c.text, "").label("definition"),
        )
        .join(execution_documents, execution_documents.c.execution_id == header.execution_id, isouter=True)
        .join(definitions, definitions.c.definition_id == header.definition_id, isouter=True)
    )


def _execution(row: Row[Any]) -> ExecutionRow:
    """The row for people to read, however damaged it is: `parked_error` then says what is shown as something else."""
    values: dict[str, Any] = {name: legible(value) for name, value in row._mapping.items()}
    damage = damage_in([values[name] for name, *_ in _SHOWN], _SHOWN)
    if damage is None and stored_status(row.status) is None:
        damage = f"its status is {legible(row.status)!r}"
    if damage is not None:
        values |= {name: _shown(values[name], kind, nullable) for name, kind, nullable, _ in _SHOWN}
        values["parked_error"] = values["parked_error"] or f"the stored row is damaged: {damage}"
    return ExecutionRow(**{**values, "status": likely_status(row.status, values["stopped_at"])})


def _shown(value: Any, kind: type, nullable: bool) -> Any:
    """The value, or one of the right kind in place of one that its column should not hold."""
    if value is None and nullable:
        return None
    if kind is str:
        return "" if value is None else str(value)
    return value if isinstance(value, int) and 0 <= value <= INSTANT_MS_MAX else 0


_SHOWN = checks_of(
    [
        executions.c.execution_id,
        executions.c.flow_id,
        executions.c.flow_name,
        executions.c.name,
        executions.c.started_at,
        executions.c.stopped_at,
        executions.c.parked_error,
        *(column for column in execution_documents.c if not column.primary_key),
    ]
)
_EVENT_CHECKS = checks_of(events.c)


def find_execution(connection: Connection, flow_id: str, name: str) -> ExecutionRow | None:
    """The execution of that name."""
    query = _readable().where(executions.c.flow_id == flow_id, executions.c.name == name)
    row = connection.execute(query).one_or_none()
    return None if row is None else _execution(row)


def find_names(connection: Connection, asked: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, Status]]:
    """Of those (flow id, name) pairs the ones that are taken, with the execution's id and status."""
    header = executions.c
    query = select(header.flow_id, header.name, header.execution_id, header.status, header.stopped_at).where(
        tuple_(header.flow_id, header.name).in_(asked)
    )
    return {
        (row.flow_id, row.name): (row.execution_id, likely_status(row.status, row.stopped_at))
        for row in connection.execute(query)
    }


def find_statuses(connection: Connection, execution_ids: list[str]) -> dict[str, Status]:
    """Of those executions the ones that exist, with their status."""
    if not execution_ids:
        return {}
    header = executions.c
    query = select(header.execution_id, header.status, header.stopped_at).where(header.execution_id.in_(execution_ids))
    return {row.execution_id: likely_status(row.status, row.stopped_at) for row in connection.execute(query)}


def list_executions(
    connection: Connection, flow_id: str, wanted: ExecutionFilter, *, from_name: str | None, limit: int
) -> list[ExecutionRow]:
    """Newest first, equal starts by name; `from_name` is the execution the page starts with."""
    header = executions.c
    query = _readable().where(header.flow_id == flow_id, *_conditions(wanted))
    if from_name is not None:
        start = connection.execute(
            select(header.started_at).where(header.flow_id == flow_id, header.name == from_name)
        ).scalar_one_or_none()
        if start is None:
            return []
        same = and_(header.started_at == start, header.name >= from_name)
        query = query.where(or_(header.started_at < start, same))
    page = query.order_by(header.started_at.desc(), header.name)
    return [_execution(row) for row in addressable(connection, page, limit, "name")]


def _conditions(wanted: ExecutionFilter) -> list[Any]:
    header = executions.c
    conditions: list[Any] = []
    if wanted.status is not None:
        conditions.append(header.status == str(wanted.status))
    if wanted.parked is not None:
        is_parked = and_(RUNNING, header.parked_error.is_not(None))
        conditions.append(is_parked if wanted.parked else not_(is_parked))
    if wanted.started_from is not None:
        conditions.append(header.started_at >= wanted.started_from)
    if wanted.started_to is not None:
        conditions.append(header.started_at <= wanted.started_to)
    if wanted.name_prefix is not None:
        # Not LIKE, which knows no case on SQLite.
        conditions.append(func.substr(header.name, 1, len(wanted.name_prefix)) == wanted.name_prefix)
    return conditions


def count_running(connection: Connection) -> int:
    """How many executions have not ended."""
    return connection.execute(select(func.count()).select_from(executions).where(RUNNING)).scalar_one()


def list_events(connection: Connection, execution_id: str, *, from_event_id: int, limit: int) -> Sequence[Event]:
    """History in order, starting at `from_event_id`."""
    rows = connection.execute(_history(execution_id, from_event_id).limit(limit))
    return [event for row in rows if (event := _event(row)) is not None]


def list_events_page(
    connection: Connection, execution_id: str, *, from_event_id: int, limit: int, bytes_max: int
) -> tuple[Sequence[Event], int | None]:
    """A page of the history in order, and the id of the event that the next page starts with, if there is one.

    The page has at most `limit` events and, from the second on, `bytes_max` bytes of detail; no more is read.
    """
    page: list[Event] = []
    query = _history(execution_id, from_event_id).limit(limit + 1).execution_options(yield_per=ROWS_AT_ONCE)
    with connection.execute(query) as rows:
        for row in rows:
            event = _event(row)
            if event is None:
                continue
            bytes_max -= len(event.detail.encode())
            if len(page) == limit or (page and bytes_max < 0):
                return page, event.event_id
            page.append(event)
    return page, None


def _history(execution_id: str, from_event_id: int) -> Select[Any]:
    return (
        select(events)
        .where(events.c.execution_id == execution_id, events.c.event_id >= from_event_id)
        .order_by(events.c.event_id)
    )


def _event(row: Row[Any]) -> Event | None:
    """The event for people to read; None, with a line in the log, if it makes no sense."""
    values = [legible(value) for value in row]
    damage = damage_in(values, _EVENT_CHECKS)
    if damage is None and row.type in _EVENT_TYPES:
        _, event_id, cause, type_name, step_name, time_ms, detail = values
        return Event(event_id, cause, EventType(type_name), step_name, time_ms, detail)
    log.warning("a damaged event of execution %s is left out: %s", values[0], damage or f"its type is {row.type!r}")
    return None


_EVENT_TYPES = frozenset(str(each) for each in EventType)
