"""Pages of a history in either direction, of all events or of those that match.

A page looks at no more than SCANNED_MAX events or so; it may then end early, with the event that the next page looks at
first. So the time for a page does not grow with the history, however few events match. If the ids of the events are
known, the page reads only their rows.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from sqlalchemy import JSON, Connection, Integer, Select, Text, bindparam, cast, column, func, select

from flowserver.base.json_values import dump_json, text_bytes
from flowserver.machine.events import Event, EventType
from flowserver.store.executions.history import ROWS_AT_ONCE, UnreadableHistory, events_of
from flowserver.store.executions.history_parts import PartReader
from flowserver.store.schema.tables import histories

SCANNED_MAX: Final = 5_000

IDS_AT_ONCE: Final = 200
"""Of events with known ids, so many are looked up by one query."""

row = histories.c


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events, and in which order; all conditions must hold."""

    step_name: str | None = None
    types: frozenset[EventType] = frozenset()
    """Any if empty."""
    is_backwards: bool = False
    after_event_id: int = 0
    before_event_id: int | None = None
    among: Sequence[int] | None = None
    """Ids in order: only these events. Any if None."""

    def is_past(self, event_id: int) -> bool:
        """Whether no event after this one, in the order of the search, can match."""
        if self.is_backwards:
            return event_id <= self.after_event_id
        return self.before_event_id is not None and event_id + 1 >= self.before_event_id

    def matches(self, event: Event) -> bool:
        """Whether the event is one of them."""
        if event.event_id <= self.after_event_id or self.step_name not in (None, event.step_name):
            return False
        if self.before_event_id is not None and event.event_id >= self.before_event_id:
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
    search = _rows if wanted.among is None else _rows_among
    for stored, outlines in search(connection, execution_id, wanted, from_event_id):
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
        if wanted.is_past(outlines[-1].event_id):
            break
    return page, None


def _rows(
    connection: Connection, execution_id: str, wanted: EventFilter, begin: int
) -> Iterator[tuple[Any, list[Event]]]:
    """Rows with their events in order, without large values."""
    query = _BACKWARDS if wanted.is_backwards else _FORWARDS
    with connection.execute(query, {"b_id": execution_id, "b_from": begin}) as rows:
        for stored in rows:
            events = _outlines(stored, wanted, begin)
            if events:
                yield stored, events


def _rows_among(
    connection: Connection, execution_id: str, wanted: EventFilter, begin: int
) -> Iterator[tuple[Any, list[Event]]]:
    """The same for the rows of the events with known ids, with these events alone."""
    ids = wanted.among or ()
    order: Iterable[int] = ids[bisect_left(ids, begin) :]
    if wanted.is_backwards:
        order = reversed(ids[: bisect_right(ids, begin)])
    query = _AMONG[connection.dialect.name, wanted.is_backwards]
    left = iter(order)
    while some := frozenset(islice(left, IDS_AT_ONCE)):
        with connection.execute(query, {"b_id": execution_id, "b_ids": dump_json(sorted(some))}) as rows:
            for stored in rows:
                events = [event for event in _outlines(stored, wanted, begin) if event.event_id in some]
                if events:
                    yield stored, events


def _outlines(stored: Any, wanted: EventFilter, begin: int) -> list[Event]:
    """The events of a row from `begin` on, in order and without large values; none if it is damaged."""
    with suppress(UnreadableHistory):
        events = events_of(stored, None)
        if wanted.is_backwards:
            return [event for event in reversed(events) if event.event_id <= begin]
        return [event for event in events if event.event_id >= begin]
    return []


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


def _rows_of(dialect: str, *, is_backwards: bool) -> Select[Any]:
    """The rows that hold the events whose ids are in a JSON array, each once."""
    if dialect == "sqlite":
        given = func.json_each(bindparam("b_ids", type_=Text)).table_valued(column("value", Integer))
    else:
        listed = cast(bindparam("b_ids", type_=Text), JSON)
        given = func.json_array_elements_text(listed).table_valued(column("value", Text))
    later = histories.alias()
    event_id = cast(given.c.value, Integer)
    holding = select(func.min(later.c.last_event_id)).where(
        later.c.execution_id == bindparam("b_id"), later.c.last_event_id >= event_id
    )
    ends = select(holding.scalar_subquery()).select_from(given)
    order = row.last_event_id.desc() if is_backwards else row.last_event_id
    query = select(histories).where(_HERE, row.last_event_id.in_(ends)).order_by(order)
    return query.execution_options(yield_per=ROWS_AT_ONCE)


_AMONG: dict[tuple[str, bool], Select[Any]] = {
    (dialect, is_backwards): _rows_of(dialect, is_backwards=is_backwards)
    for dialect in ("sqlite", "postgresql")
    for is_backwards in (False, True)
}
