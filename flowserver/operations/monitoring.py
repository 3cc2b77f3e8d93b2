"""Monitoring of the server: metrics and readiness."""

import math
from dataclasses import dataclass

from flowserver.base.clock import DAY_MS
from flowserver.concurrency.threads import Threads
from flowserver.engine.engine import Engine
from flowserver.metrics.queue_depths import ShownQueue
from flowserver.operations.cached_read import CachedRead
from flowserver.operations.stuck_executions import Overdue
from flowserver.store.access_keys import Admission, read_admission, try_write
from flowserver.store.cluster.nodes import count_nodes
from flowserver.store.executions.lookups import count_parked, count_running, count_waiting_for_redrive
from flowserver.store.integrity.file_space import database_bytes, used_bytes
from flowserver.store.invocations.parking import count_parked_invocations
from flowserver.store.overview.ages import oldest_entry_of_waiting_tasks, oldest_start_of_running
from flowserver.store.overview.counts import late_executions
from flowserver.store.queues.depths import Backlog, deepest_queues
from flowserver.store.schedules.due_schedules import overdue_schedules

CENSUS_SECONDS = 3.0
"""How long a census is cached: further requests for it in that time cost nothing."""

CENSUS_GOOD_SECONDS = 60.0
PATIENCE_SECONDS = 3.0
PROBE_SECONDS = 1.0
"""The shortest time between two readiness probes, however many requests come; each probe costs a small write."""


@dataclass(frozen=True, slots=True)
class Census:
    """The counts of one read of the database."""

    stuck: int
    parked: int
    waiting_for_redrive: int
    parked_invocations: int
    running: int
    oldest_running_seconds: float
    oldest_waiting_seconds: float
    late: int
    late_seconds: float
    nodes: int
    used_bytes: int
    database_bytes: int
    overdue_schedules: int
    overdue_schedule_seconds: float
    queues: list[ShownQueue]
    admission: Admission


class MonitoringOperations:
    """Metrics and readiness. They need no access key: they are counts and a yes or no."""

    def __init__(self, engine: Engine, *, is_wide: bool = False) -> None:
        self._engine = engine
        self._overdue = Overdue(engine.tokens)
        self._thread = Threads("monitoring")
        self._texts = Threads("metrics")  # thousands of lines take a tenth of a second, and no request waits for them
        self._census = CachedRead(
            lambda: self._thread.run(self._take_census),
            seconds=CENSUS_SECONDS,
            patience_seconds=PATIENCE_SECONDS,
            good_seconds=CENSUS_GOOD_SECONDS,
        )
        self._probe = CachedRead(
            self._try_once, seconds=PROBE_SECONDS, patience_seconds=PATIENCE_SECONDS, good_seconds=0, share_of_time=1
        )
        self._is_closed = is_wide
        self.was_open = False
        """Whether the server was found open when that was last read; False before the first time."""

    def close(self) -> None:
        """End the threads that count, and that write the metrics."""
        self._thread.close()
        self._texts.close()

    async def metrics(self, *, with_names: bool = True) -> bytes:
        """All metrics, in Prometheus text format; perhaps without those that show names of flows and functions.

        Returns within some seconds, even while the database is away.
        """
        census = await self._census.get()
        engine = self._engine
        gauges = {
            "flowserver_database_up": float(census is not None),
            "flowserver_calls_in_flight": engine.slots.taken,
            "flowserver_calls_waiting": engine.dispatcher.waiting + engine.slots.callers_waiting,
            "flowserver_pending_messages": engine.committer.pending,
            "flowserver_invocations_in_flight": len(engine.invocations.under_way),
            "flowserver_invocations_waiting": engine.invocations.waiting,
            "flowserver_deliveries_in_flight": engine.deliveries.under_way,
            "flowserver_polls_waiting": engine.queues.waiting,
        }
        gauges["flowserver_data_bytes_max"] = float(engine.disk.data_bytes_max or math.inf)
        gauges["flowserver_new_work_refused"] = float(engine.disk.refusal() is not None)
        gauges["flowserver_schedules_with_missed_runs"] = len(
            engine.schedules.missed_since(engine.clock.now_ms() - DAY_MS)
        )
        gauges["flowserver_clock_ahead_seconds"] = engine.clock_watch.look() / 1000
        gauges["flowserver_deletions_paused"] = float(engine.clock_watch.pause is not None)
        if (free := engine.disk.free_bytes()) is not None:
            gauges["flowserver_free_disk_bytes"] = free
            gauges["flowserver_disk_reserve_bytes"] = engine.disk.bytes_min
        if census is not None:
            gauges |= {
                "flowserver_stuck_executions": census.stuck,
                "flowserver_parked_executions": census.parked,
                "flowserver_executions_waiting_for_redrive": census.waiting_for_redrive,
                "flowserver_parked_invocations": census.parked_invocations,
                "flowserver_running_executions": census.running,
                "flowserver_oldest_running_execution_seconds": census.oldest_running_seconds,
                "flowserver_oldest_waiting_task_seconds": census.oldest_waiting_seconds,
                "flowserver_late_executions": census.late,
                "flowserver_late_execution_seconds": census.late_seconds,
                "flowserver_nodes": census.nodes,
                "flowserver_used_bytes": census.used_bytes,
                "flowserver_database_bytes": census.database_bytes,
                "flowserver_overdue_schedules": census.overdue_schedules,
                "flowserver_overdue_schedule_seconds": census.overdue_schedule_seconds,
            }
        engine.metrics.queues.shown = census.queues if census is not None else ()
        return await self._texts.run(lambda: engine.metrics.text(gauges, with_names=with_names))

    async def is_open(self) -> bool:
        """Whether no access key has closed the server, as last read; works also while the database is away."""
        census = await self._census.get()
        if census is not None:
            self._is_closed |= census.admission is not Admission.OPEN
            self.was_open = not self._is_closed
        return not self._is_closed

    async def is_ready(self) -> bool:
        """Whether this process takes work: the writer commits, to the disk, and the database answers.

        It makes a small write with the next commit, so it fails as callers' requests fail: with a full or read-only
        disk, a database that is away, a writer that is stuck or has crashed. It waits for PATIENCE_SECONDS at most.

        A process that refuses new work for want of space is ready: it takes the reports that running work waits for,
        and the stops and deletions that make space. Without it, running work would stop.
        """
        engine = self._engine
        if engine.lease.is_leaving or engine.watchers.is_stopping or engine.committer.has_crashed:
            return False
        return await self._probe.get() is True

    def refusal(self) -> str | None:
        """Why this process refuses new work although it is ready; None if it accepts all."""
        return self._engine.disk.refusal()

    def deletions_paused(self) -> str | None:
        """Why this process deletes nothing by its age, which its clock decides; None if it does."""
        return self._engine.clock_watch.pause

    def _take_census(self) -> Census:
        with self._engine.database.read() as connection:
            now_ms = self._engine.clock.now_ms()
            late, _ = late_executions(connection, now_ms)
            queues_max = self._engine.limits.metric_queues_max
            overdue, due_since = overdue_schedules(connection, now_ms)
            return Census(
                stuck=len(self._overdue.stuck_executions(connection, now_ms)),
                parked=count_parked(connection),
                waiting_for_redrive=count_waiting_for_redrive(connection),
                parked_invocations=count_parked_invocations(connection),
                running=count_running(connection),
                oldest_running_seconds=_seconds_since(oldest_start_of_running(connection), now_ms),
                oldest_waiting_seconds=_seconds_since(oldest_entry_of_waiting_tasks(connection), now_ms),
                nodes=count_nodes(connection),
                used_bytes=used_bytes(connection),
                database_bytes=database_bytes(connection),
                overdue_schedules=overdue,
                overdue_schedule_seconds=_seconds_since(due_since, now_ms),
                late=len(late),
                late_seconds=_seconds_since(late[0].due_at if late else None, now_ms),
                queues=[_shown(each, now_ms) for each in deepest_queues(connection, now_ms, queues_max)],
                admission=read_admission(connection),
            )

    async def _try_once(self) -> bool:
        lease, clock = self._engine.lease, self._engine.clock
        await self._engine.committer.write(lambda connection: try_write(connection, lease.node_id, clock.now_ms()))
        await self._engine.reader.ask(read_admission)
        return True


def _seconds_since(at_ms: int | None, now_ms: int) -> float:
    """0 without an instant, and for a damaged one."""
    return max(0, now_ms - at_ms) / 1000 if isinstance(at_ms, int) else 0.0


def _shown(one: Backlog, now_ms: int) -> ShownQueue:
    return ShownQueue(one.queue, one.visible, one.inflight, one.delayed, _seconds_since(one.oldest_at, now_ms))
