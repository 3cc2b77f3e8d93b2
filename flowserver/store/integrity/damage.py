"""What the view cannot say: whether histories have no gaps, and whether everything stored can be read and makes sense.

Reads the whole database in small pieces, each bounded, so the memory it takes does not grow with the database. What
the database itself cannot read is damage like any other: it is reported, and the checks continue with the rest.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, func, select
from sqlalchemy.exc import DBAPIError

from flowserver.base.json_values import load_json_object, load_stored_json
from flowserver.language.parser import parse_stored
from flowserver.machine.deliveries.destinations import read_destination
from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.machine.schedules.timing import read_timing
from flowserver.machine.state import WaitKind
from flowserver.store.executions.history import events_of
from flowserver.store.executions.history_parts import PartReader
from flowserver.store.executions.loading import stored_status
from flowserver.store.executions.retention import HIDDEN
from flowserver.store.invocations.rows import read_invocation
from flowserver.store.schedules.rows import check_schedule
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.queue_tables import deliveries, queue_messages, queues, subscriptions, topics
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.schema.tables import (
    definitions,
    execution_documents,
    executions,
    finished_items,
    flows,
    functions,
    histories,
    history_parts,
    kept_items,
    kept_scopes,
    scopes,
)
from flowserver.store.schema.version_tables import flow_aliases, flow_versions
from flowserver.store.sql.errors import is_away, reason_of
from flowserver.store.sql.unreadable import checks_of, damage_in, is_damage, legible

ROWS_AT_ONCE = 16
"""Rows held at a time; the widest have some 2 MiB."""

Read = Callable[[str], object]
"""Reads a column's text; raises anything if that makes no sense."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something stored that makes no sense: where (a row, in words) and what is wrong."""

    place: str
    problem: str


@dataclass(frozen=True, slots=True)
class Sound:
    """What the rows of a table should be: named by the format `place`, these columns readable by these functions.

    `place` names columns of the primary key only: of a row that cannot be read nothing else is known.
    """

    table: Table
    place: str
    columns: Mapping[str, Read] = field(default_factory=dict)
    reads_row: Callable[[Row[Any], PartReader], object] | None = None
    """Reads a whole row likewise."""


def find_damage(connection: Connection) -> Iterator[Damage]:
    """All damage, table by table; raises DBAPIError only when the database is away.

    It ends with a rollback: SQLite does not commit a transaction that has met damage, even if it only reads.
    """
    yield from _surviving(connection, "histories", _gaps(connection))
    yield from _surviving(connection, "table execution_documents", _missing_documents(connection))
    yield from _surviving(connection, "table schedules", _schedules_of_no_flow(connection))
    for sound in _TABLES:
        yield from _unsound(connection, sound)
    transaction = connection.get_transaction()
    if transaction is not None:
        transaction.rollback()


def _surviving(connection: Connection, place: str, found: Iterator[Damage]) -> Iterator[Damage]:
    """What a check finds, and that the database failed on the way, if it did."""
    try:
        with connection.begin_nested():  # on PostgreSQL a statement that fails would take the others with it
            yield from found
    except DBAPIError as error:
        if is_away(error) and not is_damage(error):
            raise
        yield Damage(place, f"the database cannot read it: {reason_of(error)}")


def _rows(connection: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    with connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)) as rows:
        yield from rows


def _gaps(connection: Connection) -> Iterator[Damage]:
    """Event ids are 1, 2, … up to next_event_id; counted in the header's own statement, so from its snapshot."""

    def of_history(value: ColumnElement[Any]) -> Any:
        return select(value).where(histories.c.execution_id == executions.c.execution_id).scalar_subquery()

    first, last = histories.c.first_event_id, histories.c.last_event_id
    query = select(
        executions.c.execution_id,
        executions.c.next_event_id,
        of_history(func.coalesce(func.sum(last - first + 1), 0)).label("number"),
        of_history(func.coalesce(func.min(first), 1)).label("first"),
        of_history(func.coalesce(func.max(last), 0)).label("last"),
    )
    for row in _rows(connection, query.where(executions.c.flow_id != HIDDEN)):
        following = row.next_event_id
        if not isinstance(following, int):
            continue  # reported with its row
        if (row.number, row.first, row.last) != (following - 1, 1, following - 1):
            span = f"{row.number} events from {row.first} to {row.last}; the next is to be {following}"
            yield Damage(f"history of execution {legible(row.execution_id)}", span)
    known = select(executions.c.execution_id).where(executions.c.execution_id == histories.c.execution_id)
    strays = select(histories.c.execution_id, func.sum(last - first + 1).label("number")).where(~known.exists())
    for row in _rows(connection, strays.group_by(histories.c.execution_id)):
        yield Damage(f"history of execution {legible(row.execution_id)}", f"{row.number} events of no execution")


def _missing_documents(connection: Connection) -> Iterator[Damage]:
    documents = execution_documents.c
    kept = select(documents.execution_id).where(documents.execution_id == executions.c.execution_id)
    for row in _rows(connection, select(executions.c.execution_id).where(~kept.exists())):
        yield Damage(f"execution {legible(row.execution_id)}", "it has no row in execution_documents")


def _schedules_of_no_flow(connection: Connection) -> Iterator[Damage]:
    live = select(flows.c.flow_id).where(
        flows.c.flow_id == schedules.c.flow_id, flows.c.name == schedules.c.flow_name, flows.c.deleted_at.is_(None)
    )
    for row in _rows(connection, select(schedules.c.schedule_id).where(~live.exists())):
        yield Damage(f"schedule {legible(row.schedule_id)}", "its flow does not exist")


def _unsound(connection: Connection, sound: Sound) -> Iterator[Damage]:
    """The damaged rows of a table. If the database cannot read it in one go, every row is read by itself."""
    found: set[Damage] = set()
    everything = _problems(connection, select(sound.table), sound)
    for damage in _surviving(connection, f"table {sound.table.name}", everything):
        found.add(damage)
        yield damage
    if any(damage.place.startswith("table ") for damage in found):
        alone = _surviving(connection, f"keys of table {sound.table.name}", _one_by_one(connection, sound))
        yield from (damage for damage in alone if damage not in found)


def _one_by_one(connection: Connection, sound: Sound) -> Iterator[Damage]:
    keys = list(sound.table.primary_key)
    for key in _rows(connection, select(*keys)):
        this = [column == value for column, value in zip(keys, key, strict=True)]
        alone = _problems(connection, select(sound.table).where(*this), sound)
        yield from _surviving(connection, _place(sound, key), alone)


def _problems(connection: Connection, query: Select[Any], sound: Sound) -> Iterator[Damage]:
    checks, parts = checks_of(sound.table.c), PartReader(connection)
    for row in _rows(connection, query):
        problem = damage_in(row, checks) or _unreadable(row, sound, parts)
        if problem is not None:
            yield Damage(_place(sound, row), problem)


def _unreadable(row: Row[Any], sound: Sound, parts: PartReader) -> str | None:
    for name, read in sound.columns.items():
        text = row._mapping[name]
        try:
            if text is not None:
                read(text)
        except Exception as error:  # any error means that the text is unusable
            return f"its {name} cannot be read: {error}"
    try:
        if sound.reads_row is not None:
            sound.reads_row(row, parts)
    except Exception as error:
        return f"it cannot be read: {error}"
    return None


def _place(sound: Sound, row: Row[Any]) -> str:
    return sound.place.format(**{name: legible(value) for name, value in row._mapping.items()})


def _load_object(text: str) -> None:
    if not isinstance(load_stored_json(text), dict):
        raise ValueError("not a JSON object")


def _load_input(text: str) -> None:
    if text:  # an empty text means no input
        load_json_object(text)


def _compile(text: str) -> None:
    parse_stored(text)


def _read_expression(text: str) -> None:
    read_timing(text, UTC, 0)


def _read_events(row: Row[Any], parts: PartReader) -> None:
    for event in events_of(row, parts):
        _load_object(event.detail)


def _only_status(text: str) -> None:
    if stored_status(text) is None:
        raise ValueError(f"there is no status {text!r}")


_TABLES: Final = (
    Sound(queues, "queue {name}"),
    Sound(queue_messages, "message {message_id} of queue {queue}"),
    Sound(topics, "topic {name}"),
    Sound(
        subscriptions,
        "subscription {name} of topic {topic}",
        {"endpoint": read_destination, "strategy": Strategy, "content_format": ContentFormat},
    ),
    Sound(
        deliveries,
        "delivery {delivery_id}",
        {"target": read_destination, "strategy": Strategy, "content_format": ContentFormat},
    ),
    Sound(flows, "flow {flow_id}"),
    Sound(
        schedules,
        "schedule {schedule_id}",
        {"payload": _load_input, "expression": _read_expression},
        reads_row=lambda row, _: check_schedule(row),
    ),
    Sound(executions, "execution {execution_id}", {"status": _only_status}),
    Sound(execution_documents, "execution {execution_id}", {"input": _load_input, "output": load_json_object}),
    Sound(
        scopes,
        "scope {scope_id} of execution {execution_id}",
        {"local": _load_object, "step_input": _load_object, "retries": _load_object, "wait": WaitKind},
    ),
    Sound(finished_items, "item {item} of scope {scope_id} of execution {execution_id}", {"local": _load_object}),
    Sound(
        kept_scopes,
        "kept scope {scope_id} of execution {execution_id}",
        {"local": _load_object, "step_input": _load_object},
    ),
    Sound(kept_items, "kept item {item} of scope {scope_id} of execution {execution_id}", {"local": _load_object}),
    Sound(histories, "events up to {last_event_id} of execution {execution_id}", reads_row=_read_events),
    Sound(history_parts, "part {number} of event {event_id} of execution {execution_id}", {"value": load_stored_json}),
    Sound(functions, "function {service}/{function}", {"headers": _load_object}),
    Sound(invocations, "invocation {invocation_key}", reads_row=lambda row, _: read_invocation(row)),
    Sound(flow_versions, "version {version} of flow {flow_id}"),
    Sound(flow_aliases, "alias {name} of flow {flow_id}"),
    Sound(definitions, "definition {definition_id}", {"text": _compile}),
)
