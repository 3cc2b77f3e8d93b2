"""Histories. One row holds the events of one turn; readers get single events.

Most turns make six events or more with the same instant; one row per event would cost several times as much to write.
A row's `events` is a JSON array of `[schedule_event_id, type, step_name, detail]`; ids count from `first_event_id`.
An optional fifth element lists references to large values. Entry `[document, name, event_id, number]`:
`detail[document][name]` is null here; its value is part (event_id, number).
"""

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, bindparam, insert, literal_column, select

from flowserver.base.json_values import dump_json, load_stored_json, text_bytes
from flowserver.concurrency.background_throttle import yield_to_writer
from flowserver.machine.events import Event, EventType
from flowserver.store.executions.history_parts import INSERT_PART, KnownParts, PartId, PartReader, part_row
from flowserver.store.schema.tables import histories
from flowserver.store.sql.prepared import fetch_rows, write_later
from flowserver.store.sql.unreadable import checks_of, damage_in, legible

log = logging.getLogger(__name__)

ROW_CHARACTERS = 65_536
"""A row takes no more events once its details reach this length, because readers keep several rows in memory."""

NEWS_ROWS = 8
"""`find_news` reads no more."""

ROWS_AT_ONCE = 4
"""Rows that a reader fetches at a time. A row has at most `ROW_CHARACTERS` plus the detail of one event (256 KiB)."""


EVENTS_AT_ONCE = 16
"""Events that a reader decodes without a pause, in less than 0.1 ms. To ask whether one is due takes 3 µs of each."""


class UnreadableHistory(ValueError):
    """A row of a history cannot be read; the message says why."""


def save_events(connection: Connection, batch: Iterable[tuple[str, Sequence[Event], KnownParts]]) -> None:
    """Append events in order, each list with its execution id. Raises IntegrityError if an event id is taken."""
    rows: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for execution_id, events, known in batch:
        rows.extend(_rows(execution_id, events, known, parts))
    write_later(connection, INSERT_PART, parts)
    write_later(connection, _INSERT, rows)


def _rows(
    execution_id: str, events: Sequence[Event], known: KnownParts, parts: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    start, characters = 0, 0
    texts: list[str] = []
    for number, event in enumerate(events):
        if number > start and (characters > ROW_CHARACTERS or event.time_ms != events[start].time_ms):
            yield _row(execution_id, events[start:number], texts)
            start, characters, texts = number, 0, []
        characters += len(event.detail)
        references = f",{_references(execution_id, event, known, parts)}" if event.parts else ""
        name = _quoted(event.step_name)
        texts.append(f'[{event.schedule_event_id},"{event.type}",{name},{event.detail}{references}]')
    if events:
        yield _row(execution_id, events[start:], texts)


def _row(execution_id: str, events: Sequence[Event], texts: list[str]) -> dict[str, Any]:
    return {
        "execution_id": execution_id,
        "last_event_id": events[-1].event_id,
        "first_event_id": events[0].event_id,
        "time": events[0].time_ms,
        "events": f"[{','.join(texts)}]",
    }


def _references(execution_id: str, event: Event, known: KnownParts, parts: list[dict[str, Any]]) -> str:
    """References to the event's parts, as JSON. Parts that are not stored yet are added to `parts`."""
    references: list[_Reference] = []
    for number, part in enumerate(event.parts):
        part_id = known.find(part.value)
        if part_id is None:
            part_id = PartId(event.event_id, number)
            row = part_row(execution_id, part_id, part.value)
            known.note(part.value, part_id, text_bytes(row["value"]))
            parts.append(row)
        references.append((part.document, part.name, *part_id))
    return dump_json(references)


@lru_cache(maxsize=10_000)
def _quoted(step_name: str) -> str:
    return dump_json(step_name)


def read_history(connection: Connection, execution_id: str, *, from_event_id: int = 1) -> Generator[Event, None, None]:
    """The events of an execution in order, from `from_event_id` on; rows are fetched as the caller consumes them.

    Close the iterator or exhaust it. A damaged row is left out and logged.
    """
    parts = PartReader(connection)
    with connection.execute(ROWS_FROM, {"b_id": execution_id, "b_from": from_event_id}) as rows:
        for row in rows:
            try:
                events = events_of(row, parts)
            except UnreadableHistory as error:
                log.warning("damaged events of execution %s are left out: %s", legible(execution_id), error)
                continue
            yield from (event for event in events if event.event_id >= from_event_id)


def scan_history(connection: Connection, execution_id: str, *, from_event_id: int = 1) -> Generator[Event, None, None]:
    """Like `read_history`, with null in place of large values, which are not read; a damaged row is not logged."""
    with connection.execute(ROWS_FROM, {"b_id": execution_id, "b_from": from_event_id}) as rows:
        for row in rows:
            with suppress(UnreadableHistory):
                yield from (event for event in events_of(row, None) if event.event_id >= from_event_id)


def list_events(connection: Connection, execution_id: str, *, from_event_id: int, limit: int) -> Sequence[Event]:
    """History in order, starting at `from_event_id`."""
    with closing(read_history(connection, execution_id, from_event_id=from_event_id)) as events:
        return list(islice(events, limit))


def has_event(connection: Connection, execution_id: str, event: Event) -> bool:
    """Whether the history holds this event, and no other under its id. Details are not compared."""
    with closing(scan_history(connection, execution_id, from_event_id=event.event_id)) as events:
        found = next(events, None)
    return found is not None and _identity(found) == _identity(event)


def time_of(connection: Connection, execution_id: str, event_id: int) -> int | None:
    """When the event was recorded, in ms; None if the history has no such event."""
    rows = fetch_rows(connection, _TIME, {"b_id": execution_id, "b_event": event_id})
    return rows[0].time if rows and isinstance(rows[0].time, int) else None


def _identity(event: Event) -> tuple[int, int, str, str, int]:
    return event.event_id, event.schedule_event_id, event.type, event.step_name, event.time_ms


def list_events_page(
    connection: Connection, execution_id: str, *, from_event_id: int, limit: int, bytes_max: int
) -> tuple[Sequence[Event], int | None]:
    """A page of the history in order, and the event id that starts the next page; None after the last.

    A page has at most `limit` events and `bytes_max` bytes of detail, but always the first event.
    """
    page: list[Event] = []
    with closing(read_history(connection, execution_id, from_event_id=from_event_id)) as events:
        for event in events:
            bytes_max -= text_bytes(event.detail)
            if len(page) == limit or (page and bytes_max < 0):
                return page, event.event_id
            page.append(event)
    return page, None


def find_news(connection: Connection, execution_id: str, *, from_event_id: int) -> Sequence[Event] | None:
    """The events from `from_event_id` on, if they are few and small: a look-up, which never pauses.

    None if they are not, or are damaged: `list_events_page` reads those.
    """
    rows = fetch_rows(connection, _SELECT_NEWS, {"b_id": execution_id, "b_from": from_event_id})
    if len(rows) > NEWS_ROWS or sum(len(row.events) for row in rows) > ROW_CHARACTERS:
        return None
    news: list[Event] = []
    for row in rows:
        try:
            kept = _kept_in(row)
            if any(each.parts for each in kept):
                return None
            news += (_event(row, event_id, each, None) for event_id, each in enumerate(kept, row.first_event_id))
        except UnreadableHistory:
            return None
    return [event for event in news if event.event_id >= from_event_id]


def events_of(row: Row[Any], parts: PartReader | None) -> list[Event]:
    """The events of a row of `histories`; with their large values if `parts` is given. Raises UnreadableHistory."""
    events: list[Event] = []
    for event_id, each in enumerate(_kept_in(row), row.first_event_id):
        events.append(_event(row, event_id, each, parts))
        if parts is not None or event_id % EVENTS_AT_ONCE == 0:
            yield_to_writer()
    return events


def _kept_in(row: Row[Any]) -> "list[_StoredEvent]":
    damage = damage_in(row, CHECKS)
    if damage is not None:
        raise UnreadableHistory(damage)
    try:
        kept = _DECODER.decode(row.events)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableHistory(str(error)) from None
    if row.first_event_id + len(kept) - 1 != row.last_event_id:
        raise UnreadableHistory(f"it holds {len(kept)} events from {row.first_event_id} to {row.last_event_id}")
    return kept


def find_parts(connection: Connection, execution_id: str, event_id: int, document: str) -> dict[str, PartId]:
    """The parts of one document of an event, by name; none if the row is damaged."""
    for row in rows_holding(connection, execution_id, event_id):
        if damage_in(row, CHECKS) is None:
            with suppress(msgspec.MsgspecError, IndexError):
                references = _DECODER.decode(row.events)[event_id - row.first_event_id].parts
                return {name: PartId(*part_id) for in_document, name, *part_id in references if in_document == document}
    return {}


def rows_holding(connection: Connection, execution_id: str, event_id: int) -> Sequence[Row[Any]]:
    """The row of an event, or the first one after it; none if the history ends before."""
    return fetch_rows(connection, _SELECT_ROW_OF, {"b_id": execution_id, "b_from": event_id})


def _event(row: Row[Any], event_id: int, kept: "_StoredEvent", parts: PartReader | None) -> Event:
    try:
        detail = bytes(kept.detail).decode()
        if not detail.startswith("{"):
            raise UnreadableHistory("a detail is not a JSON object")
        if kept.parts and parts is not None:
            detail = _with_parts(row.execution_id, detail, kept.parts, parts)
        return Event(event_id, kept.schedule_event_id, _TYPES[kept.type], kept.step_name, row.time, detail)
    except UnreadableHistory:
        raise
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableHistory(str(error)) from None


def _with_parts(execution_id: str, detail: str, references: "list[_Reference]", parts: PartReader) -> str:
    """The detail with its parts inserted."""
    whole = load_stored_json(detail)
    for document, name, *part_id in references:
        text = parts.text(execution_id, PartId(*part_id))
        if text is None:
            raise UnreadableHistory(f"its part {part_id} is missing")
        whole[document][name] = msgspec.Raw(text.encode())
    return dump_json(whole)


_Reference = tuple[str, str, int, int]
"""(document, name, event id, number): `detail[document][name]` is the part with that event id and number."""


class _StoredEvent(msgspec.Struct, array_like=True):
    """An event as an element of `events`."""

    schedule_event_id: int
    type: str
    step_name: str
    detail: msgspec.Raw
    parts: list[_Reference] = []


_TYPES = {each.value: each for each in EventType}
"""A look-up takes a third of the time of `EventType(...)`, and is made for each event that is read."""

_DECODER = msgspec.json.Decoder(list[_StoredEvent])
CHECKS = checks_of(histories.c)
_INSERT = insert(histories)
ROWS_FROM: Select[Any] = (
    select(histories)
    .where(histories.c.execution_id == bindparam("b_id"), histories.c.last_event_id >= bindparam("b_from"))
    .order_by(histories.c.last_event_id)
    .execution_options(yield_per=ROWS_AT_ONCE)
)
_SELECT_ROW_OF: Select[Any] = (
    select(histories)
    .where(histories.c.execution_id == bindparam("b_id"), histories.c.last_event_id >= bindparam("b_from"))
    .order_by(histories.c.last_event_id)
    .limit(literal_column("1"))
    .offset(literal_column("0"))  # without it SQLAlchemy adds a parameter for SQLite
)
_SELECT_NEWS = (
    select(histories)
    .where(histories.c.execution_id == bindparam("b_id"), histories.c.last_event_id >= bindparam("b_from"))
    .order_by(histories.c.last_event_id)
    .limit(literal_column(str(NEWS_ROWS + 1)))
    .offset(literal_column("0"))
)
_TIME = (
    select(histories.c.time)
    .where(histories.c.execution_id == bindparam("b_id"), histories.c.last_event_id >= bindparam("b_event"))
    .order_by(histories.c.last_event_id)
    .limit(literal_column("1"))
    .offset(literal_column("0"))
)
