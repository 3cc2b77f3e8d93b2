"""Fills a SQLite file with ended executions: the first is written as its turns would write it, then copied in SQL."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, Table, column, func, insert, literal, select, true

from flowserver.base.json_values import dump_json
from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Execution, Status
from flowserver.store.executions.saving import Changes, save_changes
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.flows import FlowRow, definition_id_of, insert_flow
from flowserver.store.schema.tables import execution_documents, executions
from flowserver.store.schema.tables import histories as history_rows
from flowserver.store.sql.database import Database

DEFINITION = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: p\n"
INPUT = '{"order":{"id":12345,"items":[1,2,3]},"note":"hello"}'
DETAIL = f'{{"input":{INPUT},"local":{{"body":{{"ok":true,"amount":42}}}}}}'

COPIES_AT_ONCE = 50_000
EVENTS_PER_TURN = 6
SPREAD = 2_654_435_761
"""Multiplied by this, successive numbers have no order, as names have none."""

TAIL = "-9b5e-7c51-9d0f-1f0c6a4e8b21"
number = column("value", Integer)


@dataclass(frozen=True, slots=True)
class Model:
    """Future executions that differ only in their number, which determines id, name and start."""

    prefix: str
    status: Status
    events: int
    began_at: int
    every_ms: int

    def name(self, number: int) -> str:
        """The name of that execution."""
        return f"{self.prefix}-{number * SPREAD % 2**32:08x}-{number}"

    def started_at(self, number: int) -> int:
        """Its start (ms)."""
        return self.began_at + number * self.every_ms


def keep_flow(database: Database, name: str) -> FlowRow:
    """Create a flow with that name."""
    flow_id = f"7d9f1a52-0c7e-4b1e-9f39-{name:0<12.12}"
    flow = FlowRow(
        flow_id=flow_id,
        name=name,
        description="",
        type="FDL",
        role_arn="",
        execution_mode="",
        external_storage_location="",
        environment="",
        definition_id=definition_id_of(flow_id, DEFINITION),
        definition=DEFINITION,
        created_at=0,
        modified_at=0,
    )
    with database.write() as connection:
        assert insert_flow(connection, flow)
    return flow


def fill(database: Database, flow: FlowRow, model: Model, numbers: range, *, histories: bool = True) -> None:
    """Add one execution for each number; without `histories` only the first has events."""
    first, *_ = numbers
    with database.write() as connection:
        save_changes(connection, [_changes(flow, model, first)], "filling")
    for start in range(first + 1, numbers.stop, COPIES_AT_ONCE):
        with database.write() as connection:
            copies = range(start, min(start + COPIES_AT_ONCE, numbers.stop))
            _copy(connection, model, first, copies)
            if histories:
                _copy_rows(connection, history_rows, first, copies)


def _copy(connection: Connection, model: Model, first: int, numbers: range) -> None:
    names = func.printf(f"{model.prefix}-%08x-%d", number * SPREAD % 2**32, number)
    started_at = literal(model.began_at) + number * model.every_ms
    _copy_rows(connection, executions, first, numbers, name=names, started_at=started_at, stopped_at=started_at + 50)
    _copy_rows(connection, execution_documents, first, numbers)


def _copy_rows(connection: Connection, table: Table, first: int, numbers: range, **changes: Any) -> None:
    """Insert the rows of the first execution again for every number."""
    changes["execution_id"] = func.printf("%08x" + TAIL, number)
    values = [changes.get(each.name, each) for each in table.c]
    series = func.json_each(dump_json(list(numbers))).table_valued(number)
    rows = select(*values).select_from(table.join(series, true())).where(table.c.execution_id == _id(first))
    connection.execute(insert(table).from_select(table.c.keys(), rows))


def _id(number: int) -> str:
    return f"{number:08x}{TAIL}"


def _changes(flow: FlowRow, model: Model, first: int) -> Changes:
    started_at = model.started_at(first)
    execution = Execution(
        execution_id=_id(first),
        flow_name=flow.name,
        name=model.name(first),
        input={},
        started_at=started_at,
        deadline_at=started_at + 31_536_000_000,
        status=model.status,
        next_event_id=model.events + 1,
        stopped_at=started_at + 50,
    )
    if model.status is Status.SUCCEEDED:
        execution.output = {"paid": True}
    else:
        execution.error, execution.cause = "Declined", "the card has expired"
    stored = StoredExecution(execution, flow.flow_id, flow.definition_id, 0, INPUT)
    return Changes(stored, [_event(number, started_at) for number in range(1, model.events + 1)])


def _event(event_id: int, time_ms: int) -> Event:
    turn = event_id // EVENTS_PER_TURN  # events of one instant are stored as one turn's
    return Event(event_id, event_id - 1, EventType.STEP_ENTERED, "step", time_ms + turn, DETAIL)
