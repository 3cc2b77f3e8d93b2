"""Rows of asynchronous invocations: inserted, found by key or id, and changed, one or many at once.

A change names the state that it starts from, so it fails if another node has changed the invocation.
"""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, bindparam, false, func, literal_column, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from flowserver.base.json_values import dump_json
from flowserver.machine.invocations.states import (
    ENDED,
    STOPPED_ERROR,
    InvocationEvent,
    InvocationSettings,
    InvocationState,
    InvocationStatus,
)
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import execute_many, fetch_rows, without_nulls
from flowserver.store.sql.unreadable import checks_of, damage_in, is_damage, legible, storable

log = logging.getLogger(__name__)


class InvocationChanged(Exception):
    """Another node has changed one of these invocations since it was read; read it again."""


class InvocationRow(msgspec.Struct, frozen=True, kw_only=True):
    """An invocation with its state. `node_id` is the node that holds its lease, `PARKED_HOLDER` if it is parked, None
    during a pause and after the end.
    """

    invocation_key: str
    """Identifies a submission: submitting again with the same key returns the first invocation."""
    service: str
    qualifier: str
    function: str
    invocation_id: str
    """Unique among the invocations of the function."""
    request_id: str
    node_id: str | None
    state: InvocationState
    payload: bytes
    parked_error: str | None = None
    """Why it is parked; None if it is not."""
    is_unwanted: bool = False
    destination_status: str | None = None
    execution_id: str | None = None
    """With the three names below, the execution and step that submitted it, if any."""
    flow_name: str = ""
    execution_name: str = ""
    step_name: str = ""
    callback_token: str | None = None
    """The token of the task that waits for the result."""
    callback_due: bool = False
    traceparent: str | None = None
    """The span that submitted it, if that was traced."""

    @property
    def called(self) -> tuple[str, str, str]:
        """Service, qualifier and function, the key of its function in the registry."""
        return self.service, self.qualifier, self.function


class InvocationDamaged(Exception):
    """The stored invocation is damaged; the message says where."""


def insert_invocations(connection: Connection, rows: Sequence[InvocationRow]) -> list[InvocationRow | None]:
    """Insert invocations. Returns for each the stored one with its key: itself, or the one submitted earlier.

    None means that another invocation of the function has its id.
    """
    insert = _INSERT[connection.dialect.name]
    values = without_nulls([_values(connection, row) for row in rows], "traceparent")
    if execute_many(connection, insert, values) == len(rows):
        return list(rows)
    found = find_invocations(connection, [row.invocation_key for row in rows])
    return [found.get(row.invocation_key) for row in rows]


def find_invocations(connection: Connection, keys: Sequence[str], *, lock: bool = False) -> dict[str, InvocationRow]:
    """The invocations that exist, by key; damaged ones are left out and logged."""
    query = _FIND_LOCKED if lock else _FIND
    found = {}
    for row in fetch_rows(connection, query, {"listed": texts(connection, keys)}):
        try:
            found[row.invocation_key] = read_invocation(row)
        except InvocationDamaged as damaged:
            log.warning("%s", damaged)
    return found


def find_readable(database: Database, keys: list[str]) -> list[InvocationRow]:
    """The invocations that can be read; a row that the database cannot read is logged, and does not hide the others."""
    if not keys:
        return []
    try:
        with database.read() as connection:
            return list(find_invocations(connection, keys).values())
    except DBAPIError as error:
        if not is_damage(error):
            raise
        if len(keys) == 1:
            log.warning("cannot read the ended invocation %s: %s", keys[0], reason_of(error))
            return []
    return [row for key in keys for row in find_readable(database, [key])]


def find_invocation(
    connection: Connection, service: str, function: str, invocation_id: str, *, lock: bool = False
) -> InvocationRow | None:
    """The invocation of a function with that id. Raises InvocationDamaged."""
    query = _FIND_BY_ID.with_for_update() if lock else _FIND_BY_ID
    given = {"b_service": service, "b_function": function, "b_id": invocation_id}
    rows = fetch_rows(connection, query, given)
    return read_invocation(rows[0]) if rows else None


def read_invocation(row: Row[Any]) -> InvocationRow:
    """The invocation in a row of the table. Raises InvocationDamaged."""
    values = dict(zip(_NAMES, row, strict=True))
    for name in _FLAGS:  # SQLite stores 0 and 1
        values[name] = bool(values[name])
    damage = damage_in(values.values(), _CHECKS)
    if damage is None:
        try:
            state = _state(values)
            return InvocationRow(state=state, **{name: values[name] for name in _PLAIN})
        except (msgspec.MsgspecError, ValueError) as error:
            damage = str(error)
    raise InvocationDamaged(f"invocation {legible(row.invocation_key)} is damaged: {damage}")


def save_invocations(connection: Connection, changes: Sequence[tuple[InvocationRow, InvocationRow]]) -> None:
    """Change each invocation from its first form to its second. Raises InvocationChanged if a row differs.

    Only the state, `node_id`, `callback_due` and, at the end, `parked_error` may differ.
    """
    going_on = [_guard(before) | _progress(after) for before, after in changes if not after.state.is_over]
    ended = [
        _guard(before) | _progress(after) | _end(connection, after) for before, after in changes if after.state.is_over
    ]
    stopping = [row for row in going_on if row["status"] == InvocationStatus.STOPPING]
    others = [row for row in going_on if row["status"] != InvocationStatus.STOPPING]
    changed = execute_many(connection, _UPDATE, others)
    changed += execute_many(connection, _UPDATE_WANTED, stopping) + execute_many(connection, _UPDATE_WANTED, ended)
    if changed != len(changes):
        raise InvocationChanged


def stop_unreadable_invocation(connection: Connection, key: str, now_ms: int, *, empty_payload: bool = False) -> None:
    """End an invocation whose row cannot be read, unless it has ended.

    With `empty_payload` the payload is emptied too, for a row whose payload the database itself cannot read.
    """
    status = InvocationStatus.STOPPED
    values: dict[str, Any] = {
        "status": str(status), "node_id": None, "wake_at": None, "ended_at": now_ms, "parked_error": None,
        "error": STOPPED_ERROR, "cause": "the invocation was stopped; its stored row could not be read",
        "settings": "{}", "events": _events((InvocationEvent(status, now_ms, STOPPED_ERROR),)),
        "is_unwanted": false(), "callback_due": invocations.c.callback_token.is_not(None),
    }  # fmt: skip
    if empty_payload:
        values["payload"] = b""
    unreadable = update(invocations).where(invocations.c.invocation_key == key, invocations.c.ended_at.is_(None))
    connection.execute(unreadable.values(values))


def set_destination_status(connection: Connection, key: str, status: str) -> None:
    """Record whether the delivery of the result to its destination `Succeeded` or `Failed`."""
    connection.execute(update(invocations).where(invocations.c.invocation_key == key).values(destination_status=status))


_NAMES = tuple(column.name for column in invocations.c)
_CHECKS = checks_of(invocations.c)
_FLAGS = ("is_unwanted", "callback_due")
_PLAIN = tuple(name for name in InvocationRow.__struct_fields__ if name != "state")
_UNSET = ("payload", "destination_status", "parked_error")
_READ_EVENTS = msgspec.json.Decoder(tuple[InvocationEvent, ...])
_READ_SETTINGS = msgspec.json.Decoder(InvocationSettings)
_LISTED = among(invocations.c.invocation_key, bindparam("listed"))
_FIND = select(invocations).where(_LISTED)
_FIND_LOCKED = _FIND.order_by(invocations.c.invocation_key).with_for_update()
_FIND_BY_ID = select(invocations).where(
    invocations.c.service == bindparam("b_service"),
    invocations.c.function == bindparam("b_function"),
    invocations.c.invocation_id == bindparam("b_id"),
)
_INSERT: Any = {
    "sqlite": sqlite.insert(invocations).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(invocations).on_conflict_do_nothing(),
}
_UPDATE = update(invocations).where(
    invocations.c.invocation_key == bindparam("b_key"),
    invocations.c.status == bindparam("b_status"),
    invocations.c.attempt == bindparam("b_attempt"),
    func.coalesce(invocations.c.node_id, literal_column("''")) == bindparam("b_node"),
)
_UPDATE_WANTED = _UPDATE.values({invocations.c.is_unwanted: false()})


def _state(values: dict[str, Any]) -> InvocationState:
    return InvocationState(
        status=InvocationStatus(values["status"]),
        created_at=values["created_at"],
        settings=_READ_SETTINGS.decode(values["settings"]),
        events=_READ_EVENTS.decode(values["events"]),
        attempt=values["attempt"],
        retries=values["retries"],
        wake_at=values["wake_at"],
        ended_at=values["ended_at"],
        result=values["result"],
        error=values["error"],
        cause=values["cause"],
        duration_ms=values["duration_ms"],
    )


def _values(connection: Connection, row: InvocationRow) -> dict[str, Any]:
    """The columns of a new row, without those that are NULL in every new row."""
    plain = {name: getattr(row, name) for name in _PLAIN if name not in _UNSET}
    state = row.state
    return plain | {
        "status": str(state.status),
        "wake_at": state.wake_at,
        "attempt": state.attempt,
        "retries": state.retries,
        "created_at": state.created_at,
        "ended_at": state.ended_at,
        "settings": msgspec.json.encode(state.settings).decode(),
        "events": _events(state.events),
        "payload": _binary(connection, row.payload),
    }


def _guard(before: InvocationRow) -> dict[str, Any]:
    return {
        "b_key": before.invocation_key,
        "b_status": str(before.state.status),
        "b_attempt": before.state.attempt,
        "b_node": before.node_id or "",
    }


def _progress(after: InvocationRow) -> dict[str, Any]:
    state = after.state
    return {
        "status": str(state.status),
        "node_id": after.node_id,
        "wake_at": state.wake_at,
        "attempt": state.attempt,
        "retries": state.retries,
        "events": _events(state.events),
        "error": storable(state.error),
        "cause": storable(state.cause),
        "duration_ms": state.duration_ms,
    }


def _end(connection: Connection, after: InvocationRow) -> dict[str, Any]:
    assert after.state.status in ENDED
    return {
        "ended_at": after.state.ended_at,
        "parked_error": None,
        "result": _binary(connection, after.state.result),
        "callback_due": after.callback_due,
    }


def _events(events: Sequence[InvocationEvent]) -> str:
    return storable(dump_json(events))


def _binary(connection: Connection, value: bytes | None) -> Any:
    """Bytes as `execute_many` takes them: in hexadecimal for PostgreSQL, which gets all rows as one JSON text."""
    if value is None or connection.dialect.name == "sqlite":
        return value
    return f"\\x{value.hex()}"
