"""Lists of the executions of all flows, page by page, newest first; with the same start by id.

A page is read from the index `(started_at DESC, execution_id)`; of executions that ended without success, or that wait
for a redrive, from the partial index that has only these. Running executions, and parked ones, have indexes in other
orders: while there are at most FEW_MAX of them, all are read and sorted. Executions that ended within some time are
listed by their end, the latest first, from an index that has only those without success: a success writes nothing to
it. Conditions without an index are checked on at most SCANNED_MAX executions a page; it may then end early, with a
cursor for the next page. So the time for a page does not grow with the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, func, or_, select

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.machine.state import Status
from flowserver.store.executions.listing_of_flow import Condition, ExecutionFilter, qualified
from flowserver.store.executions.shown_executions import ExecutionRow, as_shown, readable
from flowserver.store.schema.tables import PARKED, RUNNING, UNSUCCESSFUL, WAITING_FOR_REDRIVE, executions, flows
from flowserver.store.sql.bounded_pages import bytes_of
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import rows_with_texts

SCANNED_MAX = 5_000
"""Executions that a page checks conditions on: rows, not only index entries, which takes some milliseconds."""

FEW_MAX = 2_000
"""Running or parked executions that are all read for a page: a scan by the start would pass over the ended ones."""

HEADERS_AT_ONCE = 50
"""Executions read at a time: without documents each has 20 KiB of text at most."""

UNSUCCESSFUL_STATUSES = (Status.FAILED, Status.STOPPED, Status.TIMED_OUT)

header = executions.c


class AllCursor(NamedTuple):
    """The page begins after this execution, which may be deleted; `instant`, in ms, is its start, or its end in a list
    by the end.
    """

    instant: int
    execution_id: str


@dataclass(frozen=True, slots=True)
class AllListed:
    """A page. `following` is the cursor of the next page, None after the last. Any page may be short or empty."""

    rows: Sequence[ExecutionRow]
    following: AllCursor | None


def list_all_executions(
    connection: Connection,
    wanted: ExecutionFilter,
    *,
    after: AllCursor | None,
    limit: int,
    bytes_max: int,
    flow_id: str | None = None,
    flow_prefix: str | None = None,
) -> AllListed:
    """A page of executions of flows that are not deleted, or of one of them, or of those whose names begin so, without
    their documents.

    A page has at most `limit` executions and `bytes_max` bytes, but always the first execution.
    """
    found_by, checked = _conditions(wanted)
    if flow_id is not None:
        checked.append(header.flow_id == flow_id)
    if flow_prefix:
        checked.append(func.substr(header.flow_name, 1, len(flow_prefix)) == flow_prefix)
    few = _few(connection, wanted)
    if few is not None:
        some = _sorted(connection, few.where(*checked), wanted, after)[: limit + 1]
        return _page(connection, some[:limit], some[limit - 1] if len(some) > limit else None, bytes_max)
    query = _ordered(wanted, after).where(*found_by)
    end = None
    if checked:
        row = connection.execute(query.offset(SCANNED_MAX - 1).limit(1)).one_or_none()
        end = None if row is None else AllCursor(*row)
        query = _ordered(wanted, after, end).where(*found_by)
    found = [
        AllCursor(row.instant, row.execution_id)
        for row in rows_with_texts(connection, query.where(*checked), limit + 1, "execution_id")
    ]
    following = found[limit - 1] if len(found) > limit else end
    return _page(connection, found[:limit], following, bytes_max)


def _few(connection: Connection, wanted: ExecutionFilter) -> Select[Any] | None:
    """The executions that run or are parked, from the index that has only these; None if other ones or many are wanted.

    The order makes SQLite take that index.
    """
    columns = header.started_at.label("instant"), header.execution_id
    if wanted.is_by_end or wanted.waiting_for_redrive:
        return None
    if wanted.parked:
        all_such = select(*columns).where(PARKED).order_by(header.flow_id, header.started_at.desc(), header.name)
    elif wanted.status is Status.RUNNING:
        all_such = select(*columns).where(RUNNING).order_by(header.deadline_at)
    else:
        return None
    entries = all_such.with_only_columns(header.deadline_at if not wanted.parked else header.flow_id)
    counted = select(func.count()).select_from(entries.limit(FEW_MAX + 1).subquery())
    return None if connection.execute(counted).scalar_one() > FEW_MAX else all_such


def _sorted(
    connection: Connection, few: Select[Any], wanted: ExecutionFilter, after: AllCursor | None
) -> list[AllCursor]:
    """Those of the few that were started within the time and come after `after`, in order."""
    rows = [
        AllCursor(row.instant, row.execution_id) for row in rows_with_texts(connection, few, FEW_MAX, "execution_id")
    ]
    rows = [row for row in rows if isinstance(row.instant, int)]
    first, last = wanted.started_from or 0, INSTANT_MS_MAX if wanted.started_to is None else wanted.started_to
    end = None if after is None else _place(after)
    found = [row for row in rows if first <= row.instant <= last and (end is None or _place(row) > end)]
    return sorted(found, key=_place)


def _place(row: AllCursor) -> tuple[int, str]:
    return -row.instant, row.execution_id


def _conditions(wanted: ExecutionFilter) -> tuple[list[Condition], list[Condition]]:
    """Conditions that choose an index, and conditions that are checked on each row that it finds."""
    checked: list[Condition] = [*qualified(wanted.qualifier)]
    found_by: list[Condition] = []
    if wanted.status is not None:
        if wanted.is_by_end:
            found_by.append(header.status == str(wanted.status))
        else:  # an expression: for the column itself SQLite would take the index by the end, and sort
            checked.append(header.status.concat("") == str(wanted.status))
        if wanted.status in UNSUCCESSFUL_STATUSES:
            found_by.append(UNSUCCESSFUL)
    if wanted.is_by_end:
        checked += [] if wanted.started_from is None else [header.started_at >= wanted.started_from]
        checked += [] if wanted.started_to is None else [header.started_at <= wanted.started_to]
    if wanted.waiting_for_redrive:
        found_by.append(WAITING_FOR_REDRIVE)
    if wanted.name_prefix is not None:
        checked.append(func.substr(header.name, 1, len(wanted.name_prefix)) == wanted.name_prefix)
    if wanted.parked is not None:
        is_not = or_(header.parked_error.is_(None), header.stopped_at.is_not(None))
        checked.append(PARKED if wanted.parked else is_not)
    return found_by, checked


def _ordered(wanted: ExecutionFilter, after: AllCursor | None, end: AllCursor | None = None) -> Select[Any]:
    """The executions after `after` up to and with `end`, in order.

    The instant gets one bound on each side: SQLite uses only one for the search, not always the narrower.
    """
    instant, first, last = header.started_at, wanted.started_from, wanted.started_to
    if wanted.is_by_end:
        instant, first, last = header.stopped_at, wanted.ended_from, wanted.ended_to
    query = select(instant.label("instant"), header.execution_id)
    until = [at for at in (last, after and after.instant) if at is not None]
    since = [at for at in (first, end and end.instant) if at is not None]
    if until:
        query = query.where(instant <= min(until))
    if since:
        query = query.where(instant >= max(since))
    if after is not None:
        query = query.where(or_(instant < after.instant, header.execution_id > after.execution_id))
    if end is not None:
        query = query.where(or_(instant > end.instant, header.execution_id <= end.execution_id))
    return query.order_by(instant.desc(), header.execution_id)


def _page(connection: Connection, found: Sequence[AllCursor], following: AllCursor | None, bytes_max: int) -> AllListed:
    """The executions that were found, as far as they fit into the page."""
    page: list[ExecutionRow] = []
    before: AllCursor | None = None
    for start in range(0, len(found), HEADERS_AT_ONCE):
        some = found[start : start + HEADERS_AT_ONCE]
        ids = texts(connection, [each.execution_id for each in some])
        rows = {row.execution_id: row for row in fetch_rows(connection, _HEADERS, {"ids": ids})}
        for each in some:
            row = rows.get(each.execution_id)
            if row is not None:
                bytes_max -= bytes_of(row)
                if page and bytes_max < 0:
                    return AllListed(page, before)
                page.append(as_shown(row._asdict()))
            before = each
    return AllListed(page, following)


_HEADERS = (
    readable(documents=False)
    .join(flows, flows.c.flow_id == header.flow_id)
    .where(flows.c.deleted_at.is_(None), among(header.execution_id, bindparam("ids")))
)
