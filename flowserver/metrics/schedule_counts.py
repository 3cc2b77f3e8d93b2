"""What became of scheduled runs, as metrics of one process."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

LATE_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600)


class ScheduleMetrics:
    """Counters. Only the event loop's thread may count."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lost = {
            "missed": Counter(
                "flowserver_missed_schedule_runs",
                "Scheduled runs that started nothing: older than `catchUpSeconds`, or refused until given "
                "up. Of one outage at most 1,000 a schedule are counted.",
                registry=registry,
            ),
            "skipped": Counter(
                "flowserver_skipped_schedule_runs",
                "Scheduled runs that the overlap policy dropped, or that had an execution already.",
                registry=registry,
            ),
        }
        self._late = Histogram(
            "flowserver_schedule_lateness_seconds",
            "Time from the instant of a scheduled run until its execution was started.",
            buckets=LATE_SECONDS,
            registry=registry,
        )

    def runs_lost(self, how: str, count: int) -> None:
        """A number of runs was `missed` or `skipped`."""
        self._lost[how].inc(count)

    def run_started(self, late_seconds: float) -> None:
        """A scheduled run has started its execution so late."""
        self._late.observe(max(late_seconds, 0))
