"""Lists of executions, page by page. The time for a page does not grow with the number of executions of the flow.

Newest first; executions with the same start by name. A page is read from the index `(flow_id, status, started_at DESC,
name)` with one search per status, or from the index of parked executions, or of those that wait for a redrive. Three
filters have no index in this order: a prefix that many names share, "not parked", and a qualifier. With these a page
reads at most SCANNED_MAX executions of a status, with a qualifier ROWS_SCANNED_MAX; it may then end early, with a
cursor for the next page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, TextClause, func, or_, select, union_all

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.machine.state import Status
from flowserver.machine.versions.routing import LATEST, version_in
from flowserver.store.executions.shown_executions import ExecutionRow, as_shown, readable
from flowserver.store.schema.tables import PARKED, WAITING_FOR_REDRIVE, executions
from flowserver.store.sql.bounded_pages import ROWS_AT_ONCE, bytes_of
from flowserver.store.sql.prefixes import after_all
from flowserver.store.sql.unreadable import is_text, rows_with_texts

SCANNED_MAX = 20_000
"""Executions of one status that a page reads: index entries only, which takes some milliseconds."""

ROWS_SCANNED_MAX = 5_000
"""The same where the rows must be read, too."""

NAMES_MAX = 2_000
"""If fewer names have the prefix, their executions are read one by one and sorted."""

Condition = ColumnElement[bool] | TextClause
header = executions.c
other = executions.alias("other")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Which executions to list; None means no condition. Instants in ms, inclusive."""

    status: Status | None = None
    started_from: int | None = None
    started_to: int | None = None
    name_prefix: str | None = None
    names: Sequence[str] | None = None
    """Only these, for `list_executions`: at most `executions_page_max`, so that each is looked for by its name."""
    parked: bool | None = None
    waiting_for_redrive: bool = False
    """Only those of which steps have failed and wait for a redrive."""
    ended_from: int | None = None
    ended_to: int | None = None
    """For `list_all_executions`, which then orders by the end: of executions that ended without success."""
    qualifier: str | None = None
    """The number of the version that they run, the alias that chose it, or LATEST for the flow's own definition."""

    @property
    def is_by_end(self) -> bool:
        """Whether it asks for executions that ended within some time."""
        return self.ended_from is not None or self.ended_to is not None


class PageCursor(NamedTuple):
    """The execution that a page begins with. Without `started_at` (ms) it must exist; with it, it may be deleted."""

    name: str
    started_at: int | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A page. `following` is the cursor of the next page, None after the last. Any page may be short or empty."""

    rows: Sequence[ExecutionRow]
    following: PageCursor | None


@dataclass(frozen=True, slots=True)
class _Search:
    """A search: conditions that an index answers in order, and conditions checked on each row that it finds."""

    found_by: Sequence[Condition]
    slow: Sequence[Condition] = ()
    scanned_max: int = 0
    """How many executions the slow conditions may be checked on."""


def list_executions(
    connection: Connection,
    flow_id: str,
    wanted: ExecutionFilter,
    *,
    begin: PageCursor | None,
    limit: int,
    bytes_max: int,
    bytes_beside: int = 0,
    documents: bool = True,
) -> Listed:
    """A page of executions. Without `documents`, input, output and definition are empty.

    A page has at most `limit` executions and `bytes_max` bytes, but always the first execution; `bytes_beside` are
    added for each execution. If the cursor names an execution that does not exist, the page is empty.
    """
    begins = _found(connection, flow_id, begin)
    if begin is not None and begins is None:
        return Listed([], None)
    searches = _searches(connection, flow_id, wanted)
    horizon = _horizon(
        connection, [_ordered(each, wanted, begins).offset(each.scanned_max) for each in searches if each.slow]
    )
    queries = [_ordered(each, wanted, begins, horizon).where(*each.slow) for each in searches]
    found = [PageCursor(*row) for query in queries for row in rows_with_texts(connection, query, limit + 1, "name")]
    found.sort(key=_order)
    following = _place(found[limit]) if len(found) > limit else horizon
    rows, rest = _rows(connection, flow_id, [place.name for place in found[:limit]], bytes_max, bytes_beside, documents)
    return Listed(rows, following if rest is None else _place(found[rest]))


def _found(connection: Connection, flow_id: str, place: PageCursor | None) -> PageCursor | None:
    """The cursor with its start; None if there is no such execution. A damaged start sorts before all others."""
    if place is None or place.started_at is not None:
        return place
    same = (header.flow_id == flow_id) & (header.name == place.name)
    row = connection.execute(select(header.name, header.started_at).where(same)).one_or_none()
    return None if row is None else PageCursor(row.name, -_order(PageCursor(*row))[0])


def _searches(connection: Connection, flow_id: str, wanted: ExecutionFilter) -> list[_Search]:
    """Searches that together find every execution of the list, each exactly once."""
    unparked = [or_(header.parked_error.is_(None), header.stopped_at.is_not(None))] if wanted.parked is False else []
    parked = [PARKED] if wanted.parked else []
    waiting = [WAITING_FOR_REDRIVE] if wanted.waiting_for_redrive else []
    status = [] if wanted.status is None else [header.status == str(wanted.status)]
    runs = qualified(wanted.qualifier)
    prefix = wanted.name_prefix
    if wanted.names is not None:
        begins = [] if prefix is None else [func.substr(header.name, 1, len(prefix)) == prefix]
        these = select(other.c.execution_id).where(other.c.flow_id == flow_id, other.c.name.in_(wanted.names))
        return [_Search([header.execution_id.in_(these), *status, *parked, *unparked, *waiting, *runs, *begins])]
    if prefix is not None and _are_few(connection, named := _named(flow_id, prefix)):
        return [_Search([header.execution_id.in_(named), *status, *parked, *unparked, *waiting, *runs])]
    # Not LIKE, which ignores case on SQLite, and not a range, for which a planner would choose an index by name.
    named_so = [] if prefix is None else [func.substr(header.name, 1, len(prefix)) == prefix]
    slow: list[Condition] = [*named_so, *runs]
    scanned_max = min(ROWS_SCANNED_MAX, SCANNED_MAX) if runs else SCANNED_MAX
    running = wanted.status in (None, Status.RUNNING)
    if wanted.waiting_for_redrive:
        kind: list[Condition] = [header.flow_id == flow_id, WAITING_FOR_REDRIVE]
        return [_Search(kind, [*slow, *parked, *unparked], scanned_max)] if running else []
    if wanted.parked:
        return [_Search([header.flow_id == flow_id, PARKED], slow, scanned_max)] if running else []
    searches = [
        # Only running executions can be parked; checking the others would read all their rows.
        _Search(
            [header.flow_id == flow_id, header.status == str(each)],
            [*slow, *(unparked if each is Status.RUNNING else [])],
            scanned_max,
        )
        for each in Status
        if wanted.status in (None, each)
    ]
    if wanted.status is None:
        damaged = [header.execution_id.in_(_without_status(flow_id))]
        searches.append(_Search(damaged, [*slow, *unparked], scanned_max))
    return searches


def qualified(qualifier: str | None) -> list[ColumnElement[bool]]:
    """The condition of a qualifier; none without one."""
    if qualifier is None:
        return []
    if qualifier == LATEST:
        return [header.flow_version.is_(None)]
    version = version_in(qualifier)
    return [header.flow_alias == qualifier if version is None else header.flow_version == version]


def _named(flow_id: str, prefix: str) -> Select[Any]:
    """The ids of up to NAMES_MAX executions whose names have the prefix, from the index of names."""
    end = after_all(prefix)
    within = [other.c.name >= prefix, *([] if end is None else [other.c.name < end])]
    return (
        select(other.c.execution_id).where(other.c.flow_id == flow_id, *within).order_by(other.c.name).limit(NAMES_MAX)
    )


def _are_few(connection: Connection, named: Select[Any]) -> bool:
    names = named.with_only_columns(other.c.name).subquery()
    return connection.execute(select(func.count()).select_from(names)).scalar_one() < NAMES_MAX


def _without_status(flow_id: str) -> Any:
    """Ranges that match damaged statuses, which SQLite may hold: everything between and around the valid ones."""
    known = sorted(map(str, Status))
    gaps = [
        [other.c.status < known[0]],
        *([other.c.status > low, other.c.status < high] for low, high in pairwise(known)),
        [other.c.status > known[-1]],
    ]
    return union_all(*(select(other.c.execution_id).where(other.c.flow_id == flow_id, *gap) for gap in gaps))


def _ordered(
    search: _Search, wanted: ExecutionFilter, begin: PageCursor | None, horizon: PageCursor | None = None
) -> Select[Any]:
    """The search from `begin` until before `horizon`, in order.

    `started_at` gets one bound on each side: SQLite uses only one for the search, not always the narrower.
    """
    query = select(header.name, header.started_at).where(*search.found_by)
    until = [at for at in (wanted.started_to, begin and begin.started_at) if at is not None]
    since = [at for at in (wanted.started_from, horizon and horizon.started_at) if at is not None]
    if until:
        query = query.where(header.started_at <= min(until))
    if since:
        query = query.where(header.started_at >= max(since))
    if begin is not None:
        query = query.where(or_(header.started_at < begin.started_at, header.name >= begin.name))
    if horizon is not None:
        query = query.where(or_(header.started_at > horizon.started_at, header.name < horizon.name))
    return query.order_by(header.started_at.desc(), header.name)


def _horizon(connection: Connection, queries: Sequence[Select[Any]]) -> PageCursor | None:
    """Where the searches must stop: the newest of the executions at which the queries begin; None if there is none."""
    ends = [connection.execute(query.limit(1)).one_or_none() for query in queries]
    return min((PageCursor(*end) for end in ends if end is not None and is_text(end.name)), key=_order, default=None)


def _order(place: PageCursor) -> tuple[int, str]:
    """The sort key of the index. SQLite sorts a damaged instant, which is no number, after all numbers."""
    instant = place.started_at if isinstance(place.started_at, int) else INSTANT_MS_MAX + 1
    return -instant, place.name


def _place(found: PageCursor) -> PageCursor:
    return found if isinstance(found.started_at, int) else PageCursor(found.name)


def _rows(
    connection: Connection, flow_id: str, names: Sequence[str], bytes_max: int, bytes_beside: int, documents: bool
) -> tuple[list[ExecutionRow], int | None]:
    """The executions with those names, and the index of the first name that does not fit into the page."""
    query = readable(documents=documents).where(header.flow_id == flow_id)
    page: list[ExecutionRow] = []
    for start in range(0, len(names), ROWS_AT_ONCE):
        some = names[start : start + ROWS_AT_ONCE]
        rows = {row.name: row for row in connection.execute(query.where(header.name.in_(some)))}
        for number, name in enumerate(some, start):
            if name not in rows:
                continue
            bytes_max -= bytes_of(rows[name]) + bytes_beside
            if page and bytes_max < 0:
                return page, number
            page.append(as_shown(rows[name]._asdict()))
    return page, None
