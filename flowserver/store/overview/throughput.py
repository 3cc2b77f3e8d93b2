"""How many executions were started, and how many failed, over the last minute, hour or day.

Both are read from the newest entries of an index: from SERIES_ROWS_MAX at most, so a busy server has them for a shorter
time than a quiet one. Executions of deleted flows are left out, as in the lists that the numbers lead to.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, func, select

from flowserver.machine.state import Status
from flowserver.store.overview.counts import deleted_among
from flowserver.store.schema.tables import UNSUCCESSFUL, executions
from flowserver.store.sql.unreadable import is_text

SERIES_ROWS_MAX: Final = 10_000

BUCKETS: Final = 48
BUCKET_SECONDS: Final = (1_800, 60, 1)
"""Widths of the parts of a series: a day, 48 minutes, or 48 seconds in all. The widest is taken that is complete."""

FAILURES: Final = (Status.FAILED, Status.TIMED_OUT)

header = executions.c


@dataclass(frozen=True, slots=True)
class Throughput:
    """Numbers of BUCKETS parts of time, the oldest first; the last part has only begun. Instants in ms."""

    from_ms: int
    bucket_seconds: int
    complete_from: int
    """Before it, and only if it is after `from_ms`, numbers are too small."""
    started: list[int]
    failed: list[int]


def read_throughput(connection: Connection, now_ms: int) -> Throughput:
    """Starts and failures up to now, in the widest parts for which every one can be counted."""
    newest = [_started(now_ms), *(_failed(status, now_ms) for status in FAILURES)]
    cuts = [_oldest_of(connection, query) for query in newest]
    complete_from = max((at + 1 for at in cuts if at is not None), default=0)
    for seconds in BUCKET_SECONDS:
        from_ms = (now_ms // (1000 * seconds) - BUCKETS + 1) * 1000 * seconds
        if from_ms >= complete_from:
            break
    started, *failed = (_parts(connection, query, from_ms, seconds) for query in newest)
    ended = [sum(each) for each in zip(*failed, strict=True)]
    return Throughput(from_ms, seconds, max(from_ms, complete_from), started, ended)


def _started(now_ms: int) -> Select[Any]:
    """Starts, the newest first."""
    query = select(header.started_at.label("at"), header.flow_id).where(header.started_at <= now_ms)
    return query.order_by(header.started_at.desc(), header.execution_id)


def _failed(status: Status, now_ms: int) -> Select[Any]:
    query = select(header.stopped_at.label("at"), header.flow_id).where(UNSUCCESSFUL, header.status == str(status))
    return query.where(header.stopped_at <= now_ms).order_by(header.stopped_at.desc(), header.execution_id)


def _oldest_of(connection: Connection, query: Select[Any]) -> int | None:
    """The instant of the first row that no series counts; None if there are not so many."""
    instants = query.with_only_columns(query.selected_columns.at)
    found: int | None = connection.execute(instants.offset(SERIES_ROWS_MAX).limit(1)).scalar_one_or_none()
    return found


def _parts(connection: Connection, query: Select[Any], from_ms: int, seconds: int) -> list[int]:
    at = query.selected_columns.at
    some = query.where(at >= from_ms).limit(SERIES_ROWS_MAX).subquery()
    number = ((some.c.at - from_ms) // (1000 * seconds)).label("number")
    counted = select(number, some.c.flow_id, func.count().label("found")).group_by(number, some.c.flow_id)
    rows = connection.execute(counted).all()
    deleted = deleted_among(connection, {row.flow_id for row in rows if is_text(row.flow_id)})
    found = Counter[int]()
    for row in rows:
        if row.flow_id not in deleted:
            found[row.number] += row.found
    return [found[number] for number in range(BUCKETS)]
