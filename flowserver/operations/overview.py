"""The overview of the whole server: what runs, what failed, what waits, and what a person should look at."""

from dataclasses import dataclass

from sqlalchemy import Connection

from flowserver.base.clock import DAY_MS
from flowserver.base.errors import ServiceUnavailable
from flowserver.engine.engine import Engine
from flowserver.machine.state import Status
from flowserver.operations.cached_read import CachedRead
from flowserver.operations.stuck_executions import OVERDUE_MS
from flowserver.store.overview.attention import Attention, read_attention
from flowserver.store.overview.counts import (
    QUARTER_MS,
    FailuresByQuarter,
    count_flows,
    count_overdue_schedules,
    count_parked,
    count_parked_invocations,
    count_running,
    count_waiting_for_redrive,
    count_waiting_tasks,
    failures_by_quarter,
    late_executions,
)
from flowserver.store.overview.throughput import Throughput, read_throughput
from flowserver.store.sql.bounded_counts import Count

OVERVIEW_SECONDS = 5.0
"""How long an overview is cached: further requests for it in that time cost nothing."""

OVERVIEW_GOOD_SECONDS = 60.0
PATIENCE_SECONDS = 3.0

FAILED_SINCE_MS_MAX = 2 * DAY_MS
"""How far back failures are counted: since midnight, in any time zone, and yesterday's."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One read of the database, made at `at` (ms)."""

    at: int
    flows: Count
    running: Count
    parked: Count
    waiting_for_redrive: Count
    parked_invocations: Count
    overdue_schedules: Count
    waiting_tasks: Count
    late: Count
    failed: FailuresByQuarter
    timed_out: FailuresByQuarter
    throughput: Throughput
    attention: list[Attention]


@dataclass(frozen=True, slots=True)
class Overview:
    """A snapshot, and the failures in it since an instant (ms)."""

    snapshot: Snapshot
    failed_since: int
    failed: Count
    timed_out: Count
    new_work_refused: str | None
    """Why this node refuses new work now; None if it accepts it."""
    deletions_paused: str | None
    """Why this node deletes nothing by its age; None if it does."""


class OverviewOperations:
    """One read for all callers: it visits no more rows in larger tables, and is cached for some seconds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._snapshot = CachedRead(
            lambda: engine.slow_reads.ask(self._read),
            seconds=OVERVIEW_SECONDS,
            patience_seconds=PATIENCE_SECONDS,
            good_seconds=OVERVIEW_GOOD_SECONDS,
        )

    async def show(self, failed_since_ms: int | None) -> Overview:
        """The overview, with failures since the quarter of an hour of that instant; of the last day if it is None.

        An earlier instant than FAILED_SINCE_MS_MAX ago counts as that. Raises ServiceUnavailable.
        """
        snapshot = await self._snapshot.get()
        if snapshot is None:
            raise ServiceUnavailable
        since = snapshot.at - DAY_MS if failed_since_ms is None else failed_since_ms
        since = min(max(since, snapshot.at - FAILED_SINCE_MS_MAX), snapshot.at)
        since -= since % QUARTER_MS
        return Overview(
            snapshot,
            since,
            failed=snapshot.failed.since(since),
            timed_out=snapshot.timed_out.since(since),
            new_work_refused=self._engine.disk.refusal(),
            deletions_paused=self._engine.clock_watch.pause,
        )

    def _read(self, connection: Connection) -> Snapshot:
        now = self._engine.clock.now_ms()
        failed_since, due_before = now - FAILED_SINCE_MS_MAX, now - OVERDUE_MS
        late, more_late = late_executions(connection, due_before)
        return Snapshot(
            at=now,
            flows=count_flows(connection),
            running=count_running(connection),
            parked=count_parked(connection),
            waiting_for_redrive=count_waiting_for_redrive(connection),
            parked_invocations=count_parked_invocations(connection),
            overdue_schedules=count_overdue_schedules(connection, due_before),
            waiting_tasks=count_waiting_tasks(connection),
            late=Count(len(late), more_late),
            failed=failures_by_quarter(connection, Status.FAILED, failed_since, now),
            timed_out=failures_by_quarter(connection, Status.TIMED_OUT, failed_since, now),
            throughput=read_throughput(connection, now),
            attention=read_attention(
                connection,
                late,
                missing=self._engine.schedules.missed_since(now - DAY_MS),
                failed_since_ms=now - DAY_MS,
                due_before_ms=due_before,
            ),
        )
