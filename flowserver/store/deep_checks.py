"""What the view cannot say: whether histories have no gaps, and whether everything stored as text can be read.

Reads the whole database in small pieces, each bounded, so the memory it takes does not grow with the database.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from flowserver.base.json_values import load_json_object, load_stored_json
from flowserver.base.limits import Limits
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.parser import parse
from flowserver.store.tables import definitions, events, execution_documents, executions, functions, invocations, scopes

ROWS_AT_ONCE = 16
"""Rows held at a time; the widest have some 2 MiB."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something stored that makes no sense: where (a row, in words) and what is wrong."""

    place: str
    problem: str


def find_damage(connection: Connection) -> Iterator[Damage]:
    """All damage, table by table; everything is read once."""
    yield from _gaps(connection)
    yield from _unreadable_documents(connection)
    yield from _unreadable(connection, _scope_texts(), "scope {0.scope_id} of execution {0.execution_id}")
    yield from _unreadable(connection, _event_texts(), "event {0.event_id} of execution {0.execution_id}")
    headers = select(functions.c.service, functions.c.function, functions.c.headers)
    yield from _unreadable(connection, headers, "function {0.service}/{0.function}")
    pending = select(invocations.c.idempotency_key, invocations.c.event)
    yield from _unreadable(connection, pending, "asynchronous call {0.idempotency_key}")
    yield from _unusable_definitions(connection)


def _rows(connection: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    with connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)) as rows:
        yield from rows


def _gaps(connection: Connection) -> Iterator[Damage]:
    """Event ids are 1, 2, … up to next_event_id; counted in the header's own statement, so from its snapshot."""

    def of_events(value: ColumnElement[Any]) -> Any:
        return select(value).where(events.c.execution_id == executions.c.execution_id).scalar_subquery()

    ids = events.c.event_id
    query = select(
        executions.c.execution_id,
        executions.c.next_event_id,
        of_events(func.count()).label("number"),
        of_events(func.coalesce(func.min(ids), 1)).label("first"),
        of_events(func.coalesce(func.max(ids), 0)).label("last"),
    )
    for row in _rows(connection, query):
        if (row.number, row.first, row.last) != (row.next_event_id - 1, 1, row.next_event_id - 1):
            span = f"{row.number} events from {row.first} to {row.last}; the next is to be {row.next_event_id}"
            yield Damage(f"history of execution {row.execution_id}", span)
    known = select(executions.c.execution_id).where(executions.c.execution_id == events.c.execution_id)
    strays = select(events.c.execution_id, func.count().label("number")).where(~known.exists())
    for row in _rows(connection, strays.group_by(events.c.execution_id)):
        yield Damage(f"history of execution {row.execution_id}", f"{row.number} events of no execution")


def _unreadable_documents(connection: Connection) -> Iterator[Damage]:
    documents = execution_documents.c
    query = select(executions.c.execution_id, documents.input, documents.output).join(
        execution_documents, documents.execution_id == executions.c.execution_id, isouter=True
    )
    for row in _rows(connection, query):
        place = f"execution {row.execution_id}"
        if row.input is None:
            yield Damage(place, "it has no row in execution_documents")
        elif row.input:  # no text stands for no input
            yield from _problem(place, "input", row.input, load_json_object)
        if row.output is not None:
            yield from _problem(place, "output", row.output, load_json_object)


def _scope_texts() -> Select[Any]:
    return select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.local, scopes.c.step_input, scopes.c.retries)


def _event_texts() -> Select[Any]:
    return select(events.c.execution_id, events.c.event_id, events.c.detail)


_JSON_COLUMNS = ("local", "step_input", "retries", "detail", "headers", "event")


def _unreadable(connection: Connection, query: Select[Any], place: str) -> Iterator[Damage]:
    """Rows whose JSON columns are no objects; `place` is a format of the row."""
    named = [name for name in query.selected_columns.keys() if name in _JSON_COLUMNS]  # noqa: SIM118 - not a dict
    for row in _rows(connection, query):
        for name in named:
            if (text := getattr(row, name)) is not None:
                yield from _problem(place.format(row), name, text, _load_stored_object)


def _load_stored_object(text: str) -> None:
    if not isinstance(load_stored_json(text), dict):
        raise ValueError("not a JSON object")


def _problem(place: str, name: str, text: str, load: Callable[[str], object]) -> Iterator[Damage]:
    try:
        load(text)
    except ValueError as error:
        yield Damage(place, f"its {name} cannot be read: {error}")


def _unusable_definitions(connection: Connection) -> Iterator[Damage]:
    for row in _rows(connection, select(definitions.c.definition_id, definitions.c.text)):
        try:
            parse(row.text, Limits())
        except DefinitionRejected as error:
            yield Damage(f"definition {row.definition_id}", f"it is not accepted: {error.message}")
