"""Pages of a history in either direction, of all events or of those that match.

A page looks at no more than SCANNED_MAX events or so; it may then end early, with the event that the next page looks at
first. So the time for a page does not grow with the history, however few events match.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, func, select

from flowserver.base.json_values import text_bytes
from flowserver.machine.events import Event, EventType
from flowserver.store.executions.history import ROWS_AT_ONCE, UnreadableHistory, events_of
from flowserver.store.executions.history_values import PartReader
from flowserver.store.schema.tables import histories

SCANNED_MAX: Final = 5_000

row = histories.c


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events, and in which order; all conditions must hold."""

    step_name: str | None = None
    types: frozenset[EventType] = frozenset()
    """Any if empty."""
    is_backwards: bool = False
    after_event_id: int = 0

    def matches(self, event: Event) -> bool:
        """Whether the event is one of them."""
        if event.event_id <= self.after_event_id or self.step_name not in (None, event.step_name):
            return False
        return not self.types or event.type in self.types


def search_events(
    connection: Connection,
    execution_id: str,
    wanted: EventFilter,
    *,
    from_event_id: int,
    limit: int,
    bytes_max: int,
) -> tuple[Sequence[Event], int | None]:
    """A page of the events that match, from `from_event_id` on, and the event that the next page begins with, or None.

    A page has at most `limit` events and `bytes_max` bytes of detail, but always the first match; it may
    be short or empty before the last. Damaged rows are left out.
    """
    page: list[Event] = []
    scanned = 0
    parts = PartReader(connection)
    for stored, outlines in _rows(connection, execution_id, wanted, from_event_id):
        matching = {event.event_id for event in outlines if wanted.matches(event)}
        if scanned >= SCANNED_MAX:
            return page, outlines[0].event_id
        scanned += len(outlines)
        if matching:
            whole = {event.event_id: event for event in events_of(stored, parts)}
            for event in (whole[each.event_id] for each in outlines if each.event_id in matching):
                bytes_max -= text_bytes(event.detail)
                if len(page) == limit or (page and bytes_max < 0):
                    return page, event.event_id
                page.append(event)
        if wanted.is_backwards and outlines[-1].event_id <= wanted.after_event_id:
            break
    return page, None


def _rows(
    connection: Connection, execution_id: str, wanted: EventFilter, begin: int
) -> Iterator[tuple[Any, list[Event]]]:
    """Rows with their events in order, without large values."""
    query = _BACKWARDS if wanted.is_backwards else _FORWARDS
    with connection.execute(query, {"b_id": execution_id, "b_from": begin}) as rows:
        for stored in rows:
            events: list[Event] = []
            with suppress(UnreadableHistory):
                events = events_of(stored, None)
            if wanted.is_backwards:
                events = [event for event in reversed(events) if event.event_id <= begin]
            else:
                events = [event for event in events if event.event_id >= begin]
            if events:
                yield stored, events


_HERE = row.execution_id == bindparam("b_id")
_HOLDS_FROM = (
    select(func.min(row.last_event_id)).where(_HERE, row.last_event_id >= bindparam("b_from")).scalar_subquery()
)
_FORWARDS: Select[Any] = (
    select(histories)
    .where(_HERE, row.last_event_id >= bindparam("b_from"))
    .order_by(row.last_event_id)
    .execution_options(yield_per=ROWS_AT_ONCE)
)
_BACKWARDS: Select[Any] = (
    select(histories)
    .where(_HERE, row.last_event_id <= func.coalesce(_HOLDS_FROM, bindparam("b_from")))
    .order_by(row.last_event_id.desc())
    .execution_options(yield_per=ROWS_AT_ONCE)
)
