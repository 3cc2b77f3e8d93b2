"""The story of a run: what happens at which virtual time, step by step, in plain sentences."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from flowserver.base.durations import shown_duration
from flowserver.flowtests.differences import shown_value
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.running import Running
from flowserver.flowtests.simulating.faults import FAULT_CAUSE, Fault, is_error, title_of
from flowserver.flowtests.simulating.runs import Script, Simulator
from flowserver.flowtests.step_paths import StepsByPath
from flowserver.language.graph import ChoiceStep, FailStep, Flow, Pattern, Step, SucceedStep, TaskStep, WaitStep
from flowserver.machine.events import Event, EventType, whole_detail
from flowserver.machine.mappings import RUNTIME_ERROR

FIRST_LINES: Final = 25
LAST_LINES: Final = 8
"""Lines of a long story that are kept, at its begin and at its end."""
LINES_MAX: Final = 10_000
"""A story is not followed further."""


class StoryLine(NamedTuple):
    """One sentence; `line` is that of its step in the definition, 0 if it is about no step of the flow itself."""

    after_ms: int
    """Virtual time from the start."""
    line: int
    text: str


def story_of(simulator: Simulator, script: Script) -> tuple[StoryLine, ...]:
    """What happens in the run of a script; the middle of a long story is left out."""
    teller = _Teller()
    run = simulator.run(script, teller)
    if run.record.endless is not None:
        teller.tell(teller.now_ms, 0, "and so on: there is no end")
    return tuple(_shortened(teller.lines))


def _shortened(lines: list[StoryLine]) -> Iterator[StoryLine]:
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    if left_out <= 1:
        yield from lines
        return
    yield from lines[:FIRST_LINES]
    last = lines[-LAST_LINES:]
    yield StoryLine(last[0].after_ms, 0, f"… {left_out:,} more …")
    yield from last


class _Teller:
    """Makes sentences of what happens."""

    def __init__(self) -> None:
        self.lines: list[StoryLine] = []
        self.now_ms = 0
        self._began_ms: int | None = None
        self._root: Running | None = None
        self._steps: dict[int, StepsByPath] = {}
        """By the identity of the flow."""
        self._outages: set[Fault] = set()
        """Those in the story already: they meet each call from the first on."""
        self._repeats = 0
        """How often the last sentence was said again."""

    def tell(self, now_ms: int, line: int, text: str) -> None:
        """Add a sentence."""
        if self.lines and (self.lines[-1].line, self.lines[-1].text) == (line, text):
            self._repeats += 1
            return
        self._note_repeats()
        if len(self.lines) < LINES_MAX:
            self.lines.append(StoryLine(now_ms - (self._began_ms or 0), line, text))

    def _note_repeats(self) -> None:
        if self._repeats:
            last = self.lines.pop()
            self.lines.append(last._replace(text=f"{last.text}, {self._repeats + 1:,} times"))
            self._repeats = 0

    def met(self, now_ms: int, fault: Fault) -> None:
        """A fault meets a call."""
        is_told = fault in self._outages
        if fault.kind == FaultKind.OUTAGE:
            self._outages.add(fault)
        if not is_error(fault) and not is_told:
            self.tell(now_ms, 0, f"fault: {fault.place.path} {title_of(fault)}")

    def observe(self, running: Running, event: Event, path: str) -> None:
        """Take in the next event."""
        if self._began_ms is None:
            self._began_ms, self._root = event.time_ms, running
        self.now_ms = event.time_ms
        step = self._step(running.source.flow, path) if path else None
        text = _sentence(event, path, step)
        if text is not None:
            is_own = running is self._root
            within = "" if is_own else f"sub-flow {running.execution.flow_name}: "
            line = step.span.line if step is not None and is_own else 0
            self.tell(event.time_ms, line, f"{within}{text}")

    def _step(self, flow: Flow, path: str) -> Step | None:
        if id(flow) not in self._steps:
            self._steps[id(flow)] = StepsByPath(flow)
        return self._steps[id(flow)].find(path)


def _sentence(event: Event, path: str, step: Step | None) -> str | None:
    """What an event means; None if another one says it."""
    if event.type not in _TOLD:
        return None
    detail = whole_detail(event)
    match event.type:
        case EventType.EXECUTION_STARTED:
            return f"the execution starts with {shown_value(detail['input'])}"
        case EventType.STEP_ENTERED:
            return _entered(path, step)
        case EventType.TASK_SUCCEEDED:
            waits = isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK
            verb = "is reported to have succeeded with" if waits else "returns"
            return f"{path} {verb} {shown_value(detail['output'])}"
        case EventType.TASK_FAILED | EventType.TASK_SUBMIT_FAILED:
            cause = " (a fault)" if detail["cause"] == FAULT_CAUSE else ""
            return f"{path} fails with {detail['error']}{cause}{_retry(detail)}"
        case EventType.TASK_TIMED_OUT:
            return f"{path} times out{_retry(detail)}"
        case EventType.STEP_FAILED if "caughtBy" in detail:
            return f"{path} has failed, its catch leads to {detail['caughtBy']}"
        case EventType.STEP_FAILED:
            is_known = isinstance(step, FailStep) or detail["error"] != RUNTIME_ERROR
            return None if is_known else f"{path} fails with {detail['error']}: {detail['cause']}"
        case EventType.EXECUTION_SUCCEEDED:
            return f"the execution succeeds with {shown_value(detail['output'])}"
        case EventType.EXECUTION_FAILED:
            return f"the execution fails with {detail['error']}"
    return f"the execution ends: {detail['cause']}"


def _entered(path: str, step: Step | None) -> str | None:
    match step:
        case ChoiceStep():
            return f"{path} chooses"
        case WaitStep():
            return f"{path} waits"
        case SucceedStep():
            return f"{path} ends its list"
        case FailStep(error=error):
            return f"{path} fails with {error}"
    return None


def _retry(detail: dict[str, Any]) -> str:
    retry = detail.get("retry")
    if retry is None:
        return ""
    pause = shown_duration(round(retry["pauseSeconds"] * 1000))
    return f"; retry {retry['number']} of {retry['max']} in {pause}"


_TOLD: Final = frozenset(
    {
        EventType.EXECUTION_STARTED,
        EventType.EXECUTION_SUCCEEDED,
        EventType.EXECUTION_FAILED,
        EventType.EXECUTION_TIMED_OUT,
        EventType.STEP_ENTERED,
        EventType.STEP_FAILED,
        EventType.TASK_SUCCEEDED,
        EventType.TASK_FAILED,
        EventType.TASK_SUBMIT_FAILED,
        EventType.TASK_TIMED_OUT,
    }
)
