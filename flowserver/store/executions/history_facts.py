"""Histories as folds read them: of each detail only its facts, decoded with the row in one pass."""

from collections.abc import Generator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from flowserver.machine.event_details import Facts
from flowserver.machine.events import EventType
from flowserver.store.executions.history import CHECKS, ROWS_FROM
from flowserver.store.sql.unreadable import damage_in


class FactEvent(msgspec.Struct, array_like=True, gc=False):
    """An element of a row's `events`; what it does not hold is filled in."""

    schedule_event_id: int
    type: EventType
    step_name: str
    detail: Facts
    parts: msgspec.Raw = msgspec.Raw()
    event_id: int = 0
    time_ms: int = 0


def scan_facts(
    connection: Connection, execution_id: str, *, from_event_id: int = 1
) -> Generator[Sequence[FactEvent], None, None]:
    """The events of an execution in order, from `from_event_id` on, as many at a time as a row holds.

    Close the iterator or exhaust it. A damaged row is left out, and not logged.
    """
    with connection.execute(ROWS_FROM, {"b_id": execution_id, "b_from": from_event_id}) as rows:
        for row in rows:
            events = _events_of(row)
            known = from_event_id - events[0].event_id if events else 0
            yield events[known:] if known > 0 else events


def _events_of(row: Row[Any]) -> list[FactEvent]:
    """None of a damaged row."""
    if damage_in(row, CHECKS) is not None:
        return []
    try:
        events = _DECODER.decode(row.events)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return []
    if row.first_event_id + len(events) - 1 != row.last_event_id:
        return []
    for event_id, event in enumerate(events, row.first_event_id):
        event.event_id, event.time_ms = event_id, row.time
    return events


_DECODER = msgspec.json.Decoder(list[FactEvent])
