"""Executions as the API shows them. A damaged row is shown as far as it can be read; it fails no request."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, Text, bindparam, func, literal_column, null, select

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.base.json_values import dump_json
from flowserver.machine.state import Status
from flowserver.store.executions.loading import likely_status, stored_status
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.flows import FlowRow
from flowserver.store.schema.tables import (
    definitions,
    execution_documents,
    executions,
    flows,
)
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import checks_of, damage_in, legible


class ExecutionRow(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as the API shows it; documents are JSON texts, instants in ms.

    Three places build it: `as_shown` from rows, `row_of_new` when an execution starts, and `End` (`committed_ends.py`)
    when it ends while a request waits. A field that changes before the end, but not by a redrive, must also be in
    `End`.
    """

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
    failed_step: str | None = None
    parked_error: str | None
    redrive_count: int = 0
    redriven_at: int | None = None
    waiting_steps: int | None = None
    """How many of its steps have failed and wait for a redrive; None if a failure ends it."""
    definition: str
    flow_version: int | None = None
    """The published version that it runs; None for the flow's own definition."""
    flow_alias: str | None = None
    """The alias that drew the version; None without one."""
    environment: str = ""
    role_arn: str = ""
    """The flow's current environment and role; empty if the flow was not read."""

    @property
    def qualifier(self) -> str | None:
        """What it was started with: the alias or the version; None for the flow's own definition."""
        return self.flow_alias or (None if self.flow_version is None else str(self.flow_version))


_EMPTY: ColumnElement[str] = literal_column("''", Text)


def readable(*, documents: bool = True) -> Select[Any]:
    """The query for the rows that `as_shown` takes. Without `documents`, input, output and definition are empty."""
    header, own = executions.c, execution_documents.c
    query = select(
        header.execution_id,
        header.flow_id,
        header.flow_name,
        header.name,
        header.status,
        header.started_at,
        header.stopped_at,
        header.parked_error,
        header.redrive_count,
        header.redriven_at,
        header.waiting_steps,
        header.flow_version,
        header.flow_alias,
        (func.coalesce(own.input, _EMPTY) if documents else _EMPTY).label("input"),
        (own.output if documents else null()).label("output"),
        own.error,
        own.cause,
        own.failed_step,
        (func.coalesce(definitions.c.text, _EMPTY) if documents else _EMPTY).label("definition"),
    ).join(execution_documents, own.execution_id == header.execution_id, isouter=True)
    if not documents:
        return query
    return query.join(definitions, definitions.c.definition_id == header.definition_id, isouter=True)


def as_shown(row: Mapping[str, Any]) -> ExecutionRow:
    """The row for people to read. If the row is damaged, `parked_error` says what is wrong with it."""
    values: dict[str, Any] = {name: legible(value) for name, value in row.items()}
    damage = damage_in([values[name] for name, *_ in _SHOWN], _SHOWN)
    if damage is None and stored_status(row["status"]) is None:
        damage = f"its status is {legible(row['status'])!r}"
    if damage is not None:
        values |= {name: _shown(values[name], kind, nullable) for name, kind, nullable, _ in _SHOWN}
        values["parked_error"] = values["parked_error"] or f"the stored row is damaged: {damage}"
    return ExecutionRow(**{**values, "status": likely_status(row["status"], values["stopped_at"])})


def _shown(value: Any, kind: type, nullable: bool) -> Any:
    """The value, or a default of the right type if it is damaged."""
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
        executions.c.redrive_count,
        executions.c.redriven_at,
        executions.c.waiting_steps,
        executions.c.flow_version,
        executions.c.flow_alias,
        *(own for own in execution_documents.c if own.name in ("input", "output", "error", "cause", "failed_step")),
    ]
)


def row_of_new(stored: StoredExecution, flow: FlowRow) -> ExecutionRow:
    """A new execution after its first turn, without reading the database."""
    execution = stored.execution
    return ExecutionRow(
        execution_id=execution.execution_id,
        flow_id=flow.flow_id,
        flow_name=flow.name,
        name=execution.name,
        status=execution.status,
        started_at=execution.started_at,
        stopped_at=execution.stopped_at,
        input=stored.input_text,
        output=None if execution.output is None else dump_json(execution.output),
        error=execution.error,
        cause=execution.cause,
        failed_step=execution.failed_step,
        parked_error=None,
        waiting_steps=execution.waiting_steps,
        definition=flow.definition,
        flow_version=stored.flow_version,
        flow_alias=stored.flow_alias,
        environment=flow.environment,
        role_arn=flow.role_arn,
    )


def find_execution(connection: Connection, flow_name: str, name: str, *, documents: bool = True) -> ExecutionRow | None:
    """The execution of that name of the live flow of that name. As `readable` with or without `documents`."""
    query = _FIND_EXECUTION if documents else _FIND_STATE
    rows = fetch_rows(connection, query, {"b_flow": flow_name, "b_name": name})
    return as_shown(rows[0]._asdict()) if rows else None


def _by_name(query: Select[Any]) -> Select[Any]:
    return (
        query.add_columns(flows.c.environment, flows.c.role_arn)
        .join(flows, flows.c.flow_id == executions.c.flow_id)
        .where(
            flows.c.name == bindparam("b_flow"), flows.c.deleted_at.is_(None), executions.c.name == bindparam("b_name")
        )
    )


_FIND_EXECUTION = _by_name(readable())
_FIND_STATE = _by_name(readable(documents=False))
