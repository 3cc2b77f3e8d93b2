"""What happens to the executions of each flow, counted by this process since its start.

The event loop counts after commits, with plain additions; a scrape turns the numbers into metrics. Names beyond the
bounds are counted together as OTHER, so that no flow can make the numbers grow without end.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from flowserver.base.limits import Limits
from flowserver.machine.events import Event, EventType
from flowserver.metrics.bounded_names import OTHER, count_bounded
from flowserver.metrics.durations import Durations

OUTCOMES: Final = {
    EventType.TASK_SUCCEEDED: "succeeded",
    EventType.TASK_FAILED: "failed",
    EventType.TASK_TIMED_OUT: "timed out",
    EventType.TASK_SUBMIT_FAILED: "failed",
}
"""How an attempt of a task step ends, by the event that says so."""


class FlowCounts:
    """The numbers of one flow."""

    __slots__ = ("_names_max", "attempts", "durations", "ended", "errors", "started", "steps")

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self.started = 0
        self.ended: dict[str, int] = {}
        self.errors: dict[str, int] = {}
        self.durations = Durations()
        self.steps: set[str] = set()
        self.attempts: dict[tuple[str, str], int] = {}

    def has_ended(self, status: str, error: str | None, seconds: float) -> None:
        """An execution has ended."""
        self.ended[status] = self.ended.get(status, 0) + 1
        self.durations.add(seconds)
        if error is not None:
            count_bounded(self.errors, error, self._names_max)

    def has_tried(self, events: Iterable[Event]) -> None:
        """These events were committed: count the attempts that ended."""
        for event in events:
            outcome = OUTCOMES.get(event.type)
            if outcome is not None:
                key = self._counted(event.step_name), outcome
                self.attempts[key] = self.attempts.get(key, 0) + 1

    def _counted(self, step: str) -> str:
        if step not in self.steps:
            if len(self.steps) >= self._names_max:
                return OTHER
            self.steps.add(step)
        return step


class FlowMetrics(Collector):
    """The numbers of all flows."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._flows: dict[str, FlowCounts] = {}

    def of(self, flow_name: str) -> FlowCounts:
        """The numbers of a flow, or of OTHER."""
        found = self._flows.get(flow_name)
        if found is None:
            name = flow_name if len(self._flows) < self._limits.metric_flows_max else OTHER
            found = self._flows.setdefault(name, FlowCounts(self._limits.metric_names_max))
        return found

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment."""
        started = CounterMetricFamily("flowserver_flow_started_executions", STARTED, labels=["flow"])
        ended = CounterMetricFamily("flowserver_flow_ended_executions", ENDED, labels=["flow", "status"])
        errors = CounterMetricFamily("flowserver_flow_errors", ERRORS, labels=["flow", "error"])
        seconds = HistogramMetricFamily("flowserver_flow_execution_seconds", SECONDS, labels=["flow"])
        attempts = CounterMetricFamily("flowserver_step_attempts", ATTEMPTS, labels=["flow", "step", "outcome"])
        for flow, counts in list(self._flows.items()):
            started.add_metric([flow], counts.started)
            seconds.add_metric([flow], *counts.durations.buckets())
            for status, number in list(counts.ended.items()):
                ended.add_metric([flow, status], number)
            for error, number in list(counts.errors.items()):
                errors.add_metric([flow, error], number)
            for (step, outcome), number in list(counts.attempts.items()):
                attempts.add_metric([flow, step, outcome], number)
        yield from (started, ended, errors, seconds, attempts)


STARTED: Final = "Executions that this process started, by `flow`."
ENDED: Final = "Executions that this process ended, by `flow` and `status`."
ERRORS: Final = "Executions that ended without success, by `flow` and `error`."
SECONDS: Final = "Time from the start of an execution to its end, by `flow`."
ATTEMPTS: Final = (
    "Attempts of task steps that ended, by `flow`, `step` and `outcome` (`succeeded`, `failed` or `timed out`); "
    "retries are attempts, too."
)
