"""What happens to the executions of each flow, counted by this process since its start.

The event loop counts after commits, with plain additions; a scrape turns the numbers into metrics. Names beyond the
bounds are counted together as OTHER, so that no flow can make the numbers grow without end.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from flowserver.base.limits import Limits
from flowserver.machine.event_details import facts_of
from flowserver.machine.events import Event, EventType
from flowserver.metrics.bounded_names import OTHER, count_bounded
from flowserver.metrics.durations import FEW_BOUNDS_SECONDS, Durations

OUTCOMES: Final = {
    EventType.TASK_SUCCEEDED: "succeeded",
    EventType.TASK_FAILED: "failed",
    EventType.TASK_TIMED_OUT: "timed out",
    EventType.TASK_SUBMIT_FAILED: "failed",
}
"""How an attempt of a task step ends, by the event that says so."""


REMEMBERED_MAX: Final = 20_000
"""Attempts under way whose beginning is remembered; of others the time is not measured."""


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

    def has_tried(self, event: Event, outcome: str, seconds: float | None) -> None:
        """The attempt that this event ended is over; `seconds` is None if its beginning is not known."""
        counts = self._of(event.step_name)
        counts.outcomes[outcome] = counts.outcomes.get(outcome, 0) + 1
        if seconds is not None:
            counts.durations.add(seconds)
        if event.type is not EventType.TASK_SUCCEEDED:
            left = self._names_max - sum(len(each.errors) for each in self.steps.values())
            count_bounded(counts.errors, str(facts_of(event).error or ""), len(counts.errors) + max(0, left))

    def _of(self, step: str) -> StepCounts:
        counts = self.steps.get(step)
        if counts is None:
            name = step if len(self.steps) < self._names_max else OTHER
            counts = self.steps.setdefault(name, StepCounts())
        return counts


class Begun:
    """When attempts began, by their executions and the last events that they have."""

    __slots__ = ("_times_ms",)

    def __init__(self) -> None:
        self._times_ms: dict[tuple[str, int], int] = {}

    def note(self, execution_id: str, event_id: int, time_ms: int) -> None:
        """An attempt began; the oldest is forgotten if there are too many."""
        if len(self._times_ms) >= REMEMBERED_MAX:
            del self._times_ms[next(iter(self._times_ms))]
        self._times_ms[execution_id, event_id] = time_ms

    def take(self, execution_id: str, event_id: int) -> int | None:
        """When the attempt of that event began, which is not asked again; None if that is not known."""
        return self._times_ms.pop((execution_id, event_id), None)


class FlowMetrics(Collector):
    """The numbers of all flows."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._flows: dict[str, FlowCounts] = {}
        self._begun = Begun()

    def of(self, flow_name: str) -> FlowCounts:
        """The numbers of a flow, or of OTHER."""
        found = self._flows.get(flow_name)
        if found is None:
            name = flow_name if len(self._flows) < self._limits.metric_flows_max else OTHER
            found = self._flows.setdefault(name, FlowCounts(self._limits.metric_names_max))
        return found

    def committed(self, execution_id: str, counts: FlowCounts, events: Iterable[Event]) -> None:
        """Events of an execution were committed: count the attempts that they ended."""
        for event in events:
            if event.type is EventType.TASK_STARTED:
                self._begun.note(execution_id, event.event_id, event.time_ms)
                continue
            if event.type is EventType.TASK_SUBMITTED:
                begun = self._begun.take(execution_id, event.schedule_event_id)
                if begun is not None:
                    self._begun.note(execution_id, event.event_id, begun)
                continue
            outcome = OUTCOMES.get(event.type)
            if outcome is not None:
                begun = self._begun.take(execution_id, event.schedule_event_id)
                counts.has_tried(event, outcome, None if begun is None else (event.time_ms - begun) / 1000)

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
