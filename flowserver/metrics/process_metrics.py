"""Prometheus metrics of one server process: names and buckets. Knows no engine.

Every application has a registry of its own. Gauges have no state: each call of `text` brings their values, and
what is not known at the moment is left out.
"""

import platform
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flowserver import __version__
from flowserver.base.limits import Limits
from flowserver.machine.state import Status
from flowserver.metrics.flow_counts import FlowMetrics
from flowserver.metrics.queue_depths import QueueMetrics
from flowserver.metrics.schedule_counts import ScheduleMetrics
from flowserver.metrics.span_counts import SpanMetrics

GAUGES: Final = {
    "flowserver_stuck_executions": "Running executions that nothing would continue, or that have been due for more "
    "than 10 seconds. More than 0 is a defect of the server, or no server is running.",
    "flowserver_parked_executions": "Running executions that the server cannot continue; each waits for a restart "
    "or a stop.",
    "flowserver_executions_waiting_for_redrive": "Running executions with failed steps that wait for a redrive.",
    "flowserver_parked_invocations": "Asynchronous invocations that the server cannot continue.",
    "flowserver_running_executions": "Executions that have not ended, including parked ones.",
    "flowserver_oldest_running_execution_seconds": "How long the oldest execution that has not ended has run; 0 if "
    "none runs.",
    "flowserver_oldest_waiting_task_seconds": "How long the task has waited that waits longest for a report with its "
    "token, of the first 1,000 in the first 5,000 waits by execution id; 0 if none waits.",
    "flowserver_late_executions": "Executions with a wait, a time-out or a deadline that is due and has not had its "
    "effect; the first 2,000 are counted.",
    "flowserver_late_execution_seconds": "How long that of them is due that is due for longest; 0 if there is none. If "
    "it stays above some seconds, the servers have more work than they can do.",
    "flowserver_nodes": "Server processes registered in the database.",
    "flowserver_used_bytes": "Bytes that all data takes; an estimate on PostgreSQL.",
    "flowserver_database_bytes": "Bytes of the database's files, with their indexes and free space, without logs: what "
    "they take of the disk.",
    "flowserver_overdue_schedules": "Schedules with a tick that is due and has not started an execution yet.",
    "flowserver_overdue_schedule_seconds": "How long the oldest of them has been due; 0 if there is none. If it stays "
    "above 10, no server runs schedules, or their starts are refused.",
    "flowserver_schedules_with_missed_runs": "Schedules of which this process has found a missed run in the last 24 "
    "hours, since its start; the last 1,000 are counted.",
    "flowserver_database_up": "1 if the database answers, else 0; without it, the gauges above are left out.",
    "flowserver_free_disk_bytes": "Free bytes of the disk with the SQLite file; below flowserver_disk_reserve_bytes "
    "new work is refused. Not on PostgreSQL.",
    "flowserver_disk_reserve_bytes": "The setting disk_reserve_mib, in bytes; 0 for none. Not on PostgreSQL.",
    "flowserver_data_bytes_max": "The setting data_gib_max, in bytes, above which new work is refused; infinite for "
    "none.",
    "flowserver_new_work_refused": "1 while this process refuses starts, redrives, invocations and messages with "
    "DiskAlmostFull, else 0.",
    "flowserver_clock_ahead_seconds": "By how much this process's clock is ahead of the time that has passed; below "
    "0 if it is behind. Above the limit clock_differ_seconds, deletions by age pause.",
    "flowserver_deletions_paused": "1 while this process deletes nothing by its age, because its clock was set, or "
    "differs from that of another node; else 0.",
    "flowserver_calls_in_flight": "Calls of functions that this process is making.",
    "flowserver_calls_waiting": "Calls of functions that wait for a slot; the limits are invocations_in_flight_max "
    "and in_flight_share_percent.",
    "flowserver_pending_messages": "Messages and changes that wait for this process's next commit.",
    "flowserver_invocations_in_flight": "Asynchronous invocations that this process is making.",
    "flowserver_invocations_waiting": "Asynchronous invocations that wait for their turn in this process.",
    "flowserver_deliveries_in_flight": "Messages and results that this process is sending to a destination.",
    "flowserver_polls_waiting": "Receives that wait in this process for a message; the limit is queue_polls_max.",
}
"""Metrics that each scrape measures: those up to `flowserver_database_up` in the database, which all servers share."""

COMMIT_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
BATCH_ITEMS: Final = (1, 2, 5, 10, 20, 50, 100, 200)
LATENESS_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class Metrics:
    """Counters of one process. Only the event loop's thread may count.

    `registry` has counts alone; `named` has what shows names of flows, steps, functions and queues.
    """

    def __init__(self, limits: Limits) -> None:
        self.registry = CollectorRegistry()
        self.named = CollectorRegistry()
        self.flows = FlowMetrics(limits)
        self.named.register(self.flows)
        self.queues = QueueMetrics()
        self.named.register(self.queues)
        self._gauges = _Gauges()
        self.registry.register(self._gauges)
        self._commits = Counter("flowserver_commits", "Transactions committed by this process.", registry=self.registry)
        self._batch_items = Histogram(
            "flowserver_batch_items",
            "Messages and changes in one transaction.",
            buckets=BATCH_ITEMS,
            registry=self.registry,
        )
        self._commit_seconds = Histogram(
            "flowserver_commit_seconds",
            "Time from the beginning of a transaction until it is durable.",
            buckets=COMMIT_SECONDS,
            registry=self.registry,
        )
        self._ended = Counter(
            "flowserver_ended_executions",
            "Executions that this process ended, by `status`.",
            ["status"],
            registry=self.registry,
        )
        for status in Status:
            if status is not Status.RUNNING:
                self._ended.labels(status)  # so that the first one is seen to be added
        self._deleted = Counter(
            "flowserver_deleted_executions",
            "Ended executions that this process deleted: the retention time was over, or space was needed.",
            registry=self.registry,
        )
        self.schedules = ScheduleMetrics(self.registry)
        self.spans = SpanMetrics()
        self.registry.register(self.spans)
        self._lateness = Histogram(
            "flowserver_wakeup_lateness_seconds",
            "Time from the instant at which a wait or time-out was due until its end was durable.",
            buckets=LATENESS_SECONDS,
            registry=self.registry,
        )
        build = Info("flowserver_build", "Versions that this process runs.", registry=self.registry)
        build.info({"version": __version__, "python": platform.python_version()})

    def committed(self, items: int, seconds: float) -> None:
        """A transaction with this number of items took `seconds`."""
        self._commits.inc()
        self._batch_items.observe(items)
        self._commit_seconds.observe(seconds)

    def ended(self, status: str) -> None:
        """An execution has ended."""
        self._ended.labels(status).inc()

    def deleted(self, executions: int) -> None:
        """A number of executions have been deleted."""
        self._deleted.inc(executions)

    def woke(self, late_seconds: float) -> None:
        """A wait ended `late_seconds` after its instant."""
        self._lateness.observe(late_seconds)

    def text(self, gauges: Mapping[str, float], *, with_names: bool = True) -> bytes:
        """All metrics in Prometheus text format, with the given gauges; perhaps without those that show names."""
        self._gauges.values = gauges
        return generate_latest(self.registry) + (generate_latest(self.named) if with_names else b"")


class _Gauges(Collector):
    def __init__(self) -> None:
        self.values: Mapping[str, float] = {}

    def describe(self) -> Iterator[Metric]:
        yield from (GaugeMetricFamily(name, meaning) for name, meaning in GAUGES.items())

    def collect(self) -> Iterator[Metric]:
        for name, value in self.values.items():
            yield GaugeMetricFamily(name, GAUGES[name], value=value)
