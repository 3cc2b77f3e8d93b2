"""What happens to the executions of each flow, counted by this process since its start.

The event loop counts after commits, with plain additions; a scrape turns the numbers into metrics. Names beyond the
bounds are counted together as OTHER, so that no flow can make the numbers grow without end.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from flowserver.base.limits import Limits
from flowserver.machine.attempts_under_way import OUTCOMES, EndedAttempt
from flowserver.machine.event_details import facts_of
from flowserver.machine.events import EventType
from flowserver.metrics.bounded_names import OTHER, count_bounded
from flowserver.metrics.durations import FEW_BOUNDS_SECONDS, Durations


class StepCounts:
    """The numbers of one task step."""

    __slots__ = ("durations", "errors", "outcomes")

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.errors: dict[str, int] = {}
        self.durations = Durations(FEW_BOUNDS_SECONDS)


class FlowCounts:
    """The numbers of one flow."""

    __slots__ = ("_names_max", "durations", "ended", "errors", "started", "steps")

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self.started = 0
        self.ended: dict[str, int] = {}
        self.errors: dict[str, int] = {}
        self.durations = Durations()
        self.steps: dict[str, StepCounts] = {}

    def has_ended(self, status: str, error: str | None, seconds: float) -> None:
        """An execution has ended."""
        self.ended[status] = self.ended.get(status, 0) + 1
        self.durations.add(seconds)
        if error is not None:
            count_bounded(self.errors, error, self._names_max)

    def has_tried(self, attempt: EndedAttempt) -> None:
        """An attempt is over; its time is counted if its beginning is known."""
        event, begun = attempt
        counts, outcome = self._of(event.step_name), OUTCOMES[event.type]
        counts.outcomes[outcome] = counts.outcomes.get(outcome, 0) + 1
        if begun is not None:
            counts.durations.add((event.time_ms - begun.time_ms) / 1000)
        if event.type is not EventType.TASK_SUCCEEDED:
            left = self._names_max - sum(len(each.errors) for each in self.steps.values())
            count_bounded(counts.errors, str(facts_of(event).error or ""), len(counts.errors) + max(0, left))

    def _of(self, step: str) -> StepCounts:
        counts = self.steps.get(step)
        if counts is None:
            name = step if len(self.steps) < self._names_max else OTHER
            counts = self.steps.setdefault(name, StepCounts())
        return counts


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
        step_errors = CounterMetricFamily("flowserver_step_errors", STEP_ERRORS, labels=["flow", "step", "error"])
        step_seconds = HistogramMetricFamily("flowserver_step_attempt_seconds", STEP_SECONDS, labels=["flow", "step"])
        for flow, counts in list(self._flows.items()):
            started.add_metric([flow], counts.started)
            seconds.add_metric([flow], *counts.durations.buckets())
            for status, number in list(counts.ended.items()):
                ended.add_metric([flow, status], number)
            for error, number in list(counts.errors.items()):
                errors.add_metric([flow, error], number)
            for step, tried in list(counts.steps.items()):
                step_seconds.add_metric([flow, step], *tried.durations.buckets())
                for outcome, number in list(tried.outcomes.items()):
                    attempts.add_metric([flow, step, outcome], number)
                for error, number in list(tried.errors.items()):
                    step_errors.add_metric([flow, step, error], number)
        yield from (started, ended, errors, seconds, attempts, step_errors, step_seconds)


STARTED: Final = "Executions that this process started, by `flow`."
ENDED: Final = "Executions that this process ended, by `flow` and `status`."
ERRORS: Final = "Executions that ended without success, by `flow` and `error`."
SECONDS: Final = "Time from the start of an execution to its end, by `flow`."
ATTEMPTS: Final = (
    "Attempts of task steps that ended, by `flow`, `step` and `outcome` (`succeeded`, `failed` or `timed out`); "
    "retries are attempts, too."
)
STEP_ERRORS: Final = "Attempts of task steps that failed or timed out, by `flow`, `step` and `error`."
STEP_SECONDS: Final = (
    "Time of the attempts of task steps, waits for reports included, by `flow` and `step`; without attempts that began "
    "on another node, or before this process did."
)
