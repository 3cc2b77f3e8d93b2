"""The step summary of an execution: per step path what became of it. A fold over the history.

Theory of operation. Each running list of steps makes a chain of events: every event names its cause, another event. So
the fold keeps the last event of each list that is open, and knows by an event's cause in which list it happened. A
step inside a choice belongs to the list that the choice is in. What is kept is bounded by the lists that are open at
once (`live_scopes_max`) and by the steps of the definition, however long the history is.

A path names a step with the steps around it: `pack[].label` is the step `label` of all iterations of the foreach
`pack`, counted together; `ship[1].book` is in the second branch of the parallel step `ship`; `check.refund` in an
option of the choice `check`.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from flowserver.base.json_values import JsonObject, load_stored_json
from flowserver.machine.events import Event, EventType


class StepStatus(StrEnum):
    """What became of a step."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    CAUGHT = "Caught"
    """It failed, and its `catch` went on elsewhere."""
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    """It was cut short: by the failure of another step, or by the end of the execution."""


@dataclass(slots=True)
class Iterations:
    """The iterations of a foreach, of all its entries together. `total` counts those that wait for a slot, too."""

    total: int = 0
    done: int = 0
    failed: int = 0
    running: int = 0


@dataclass(slots=True)
class StepSummary:
    """One step path. Counts are of entries: a step in a loop or an iteration is entered many times. Instants in ms."""

    path: str
    first_ms: int
    last_ms: int
    """The last event of the step itself."""
    entered: int = 0
    running: int = 0
    succeeded: int = 0
    caught: int = 0
    failed: int = 0
    cancelled: int = 0
    attempts: int = 0
    """Attempts of a task; 0 for other steps."""
    error: str | None = None
    """The last error of an attempt or of the step."""
    iterations: Iterations | None = None
    last_end: StepStatus = StepStatus.RUNNING

    @property
    def status(self) -> StepStatus:
        """Running while any entry runs; then whether any failed or was cut short; else what the last one came to."""
        if self.running:
            return StepStatus.RUNNING
        if self.failed:
            return StepStatus.FAILED
        return StepStatus.CANCELLED if self.cancelled else self.last_end


@dataclass(slots=True, eq=False)
class _Entry:
    """A step that is entered and not left."""

    step: StepSummary
    entered_event_id: int
    started_event_id: int = 0
    """Its StepStarted, which may cause events until the step is left."""
    end: StepStatus = StepStatus.CANCELLED
    opened: int = 0
    """Iterations or branches."""
    total: int = 0
    done: int = 0
    """Of its iterations."""


@dataclass(slots=True, eq=False)
class _List:
    """A running list of steps: the flow's own, a branch or an iteration; with the choices and steps open in it."""

    path: str
    around: "_List | None" = None
    entries: list[_Entry] = field(default_factory=list)
    head: int = 0
    """Its last event."""
    has_failed: bool = False


class StepSummaries:
    """The fold. Add the events of one execution in order, from the first; large values may be left out of them."""

    def __init__(self) -> None:
        self.last_event_id = 0
        self._steps: dict[str, StepSummary] = {}
        self._lists: dict[int, _List] = {}
        """By the events that may cause more: the last one of each list, and StepStarted of each open step."""
        self._unfinished: dict[int, _Entry] = {}
        """By StepEntered the entries of foreach steps that failed or were cut short, since the last redrive."""
        self._resumable: dict[int, _Entry] = {}
        """Those from before the last redrive that were not entered again."""

    def __len__(self) -> int:
        """How much it keeps: step paths, events that may cause more, and unfinished loops."""
        return len(self._steps) + len(self._lists) + len(self._unfinished) + len(self._resumable)

    def steps(self) -> list[StepSummary]:
        """All paths in the order in which they were entered first; the position of a path never changes."""
        return list(self._steps.values())

    def add(self, event: Event) -> None:
        """Take an event in. One whose cause is missing from a damaged history is left out."""
        self.last_event_id = event.event_id
        if event.type is EventType.EXECUTION_STARTED:
            self._begin(event)
        elif event.type is EventType.EXECUTION_REDRIVEN:
            self._begin_again(event)
        elif not event.step_name:
            self._end(event)
        elif (steps := self._lists.get(event.schedule_event_id)) is not None:
            if event.type in _ITEM_ENTERED:
                self._enter_item(steps, event)
            elif event.type in _ITEM_EXITED:
                self._exit_item(steps, event)
            else:
                self._add_in(steps, event)

    def _begin(self, event: Event) -> None:
        self._lists = {event.event_id: _List("", head=event.event_id)}

    def _begin_again(self, event: Event) -> None:
        """What failed or was cut short does not count any more: it is entered again, or dropped."""
        for step in self._steps.values():
            step.entered -= step.failed + step.cancelled
            if step.failed or step.cancelled:
                step.last_end = StepStatus.SUCCEEDED if step.succeeded else StepStatus.CANCELLED
            step.failed = step.cancelled = 0
            if step.iterations is not None:
                step.iterations.failed = 0
        self._resumable, self._unfinished = self._unfinished, {}
        for entry in self._resumable.values():
            _count_iterations(entry, -1)
        self._begin(event)

    def _end(self, event: Event) -> None:
        """The execution has ended: what is still open is cut short."""
        for steps in set(self._lists.values()):
            for entry in steps.entries:
                self._close(entry, StepStatus.CANCELLED, event.time_ms)
                if entry.step.iterations is not None:
                    entry.step.iterations.running = 0
        self._lists = {}

    def _add_in(self, steps: _List, event: Event) -> None:
        """An event of a step in that list."""
        if event.type is EventType.STEP_ENTERED:
            self._enter(steps, event)
            return
        entry = steps.entries[-1] if steps.entries else None
        if entry is None:
            return
        entry.step.last_ms = event.time_ms
        match event.type:
            case EventType.STEP_STARTED:
                entry.started_event_id = event.event_id
            case EventType.TASK_SCHEDULED:
                entry.step.attempts += 1
            case EventType.TASK_FAILED | EventType.TASK_TIMED_OUT | EventType.TASK_SUBMIT_FAILED:
                entry.step.error = _text(_detail(event).get("error"))
            case EventType.STEP_SUCCEEDED:
                entry.end = StepStatus.SUCCEEDED
            case EventType.STEP_FAILED:
                self._fail(steps, entry, event)
            case EventType.STEP_EXITED:
                steps.entries.pop()
                self._lists.pop(entry.started_event_id, None)
                self._close(entry, entry.end, event.time_ms)
        self._move(steps, event.event_id)

    def _enter(self, steps: _List, event: Event) -> None:
        path = f"{_prefix(steps)}{event.step_name}"
        step = self._steps.get(path)
        if step is None:
            step = self._steps[path] = StepSummary(path, event.time_ms, event.time_ms)
        step.entered += 1
        step.running += 1
        step.last_ms = event.time_ms
        self._move(steps, event.event_id)
        entry = _Entry(step, event.event_id)
        if self._resumable:
            before = self._resumable.pop(_number(_detail(event).get("resumes"), 0), None)
            if before is not None:
                entry.opened, entry.total, entry.done = before.opened, before.total, before.done
                _count_iterations(entry, 1)
        steps.entries.append(entry)

    def _fail(self, steps: _List, entry: _Entry, event: Event) -> None:
        detail = _detail(event)
        entry.step.error = _text(detail.get("error"))
        entry.end = StepStatus.CAUGHT if "caughtBy" in detail else StepStatus.FAILED
        steps.has_failed = entry.end is StepStatus.FAILED

    def _enter_item(self, steps: _List, event: Event) -> None:
        """A branch or iteration of the list's innermost step begins."""
        if not steps.entries:
            return
        entry = steps.entries[-1]
        detail = _detail(event)
        index = _number(detail.get("index"), entry.opened)
        entry.opened = max(entry.opened, index + 1)
        entry.step.last_ms = event.time_ms
        is_iteration = event.type is EventType.ITERATION_ENTERED
        if is_iteration:
            iterations = entry.step.iterations = entry.step.iterations or Iterations()
            iterations.running += 1
            total = max(entry.total, entry.opened, _number(detail.get("total"), 0))
            iterations.total += total - entry.total
            entry.total = total
        path = f"{_prefix(steps)[:-1]}[{'' if is_iteration else index}]."
        self._lists[event.event_id] = _List(path, steps, head=event.event_id)

    def _exit_item(self, inner: _List, event: Event) -> None:
        self._lists.pop(inner.head, None)
        steps = inner.around
        if steps is None or not steps.entries:
            return
        entry = steps.entries[-1]
        entry.step.last_ms = event.time_ms
        is_cancelled = "cancelled" in _detail(event)
        if event.type is EventType.ITERATION_EXITED and entry.step.iterations is not None:
            entry.step.iterations.running -= 1
            entry.step.iterations.failed += inner.has_failed
            if not inner.has_failed and not is_cancelled:
                entry.step.iterations.done += 1
                entry.done += 1
        if not is_cancelled:  # no event follows from a cancelled one
            self._move(steps, event.event_id)

    def _close(self, entry: _Entry, end: StepStatus, at_ms: int) -> None:
        step = entry.step
        step.running -= 1
        step.last_ms = at_ms
        step.last_end = end
        match end:
            case StepStatus.SUCCEEDED:
                step.succeeded += 1
            case StepStatus.CAUGHT:
                step.caught += 1
            case StepStatus.FAILED:
                step.failed += 1
            case _:
                step.cancelled += 1
        if entry.total and end is not StepStatus.SUCCEEDED:
            self._unfinished[entry.entered_event_id] = entry

    def _move(self, steps: _List, event_id: int) -> None:
        """This is the list's last event now. The one before causes no more, unless an open step started with it."""
        if not steps.entries or steps.head != steps.entries[-1].started_event_id:
            self._lists.pop(steps.head, None)
        self._lists[event_id] = steps
        steps.head = event_id


_ITEM_ENTERED = (EventType.BRANCH_ENTERED, EventType.ITERATION_ENTERED)
_ITEM_EXITED = (EventType.BRANCH_EXITED, EventType.ITERATION_EXITED)


def _prefix(steps: _List) -> str:
    """The path up to the step that is entered next: that of the innermost open step, or of the list."""
    return f"{steps.entries[-1].step.path}." if steps.entries else steps.path


def _count_iterations(entry: _Entry, sign: int) -> None:
    iterations = entry.step.iterations
    assert iterations is not None, "only entries with iterations are unfinished"
    iterations.total += sign * entry.total
    iterations.done += sign * entry.done


def _detail(event: Event) -> JsonObject:
    detail = load_stored_json(event.detail)
    return detail if isinstance(detail, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default
