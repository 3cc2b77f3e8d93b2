"""The step summary of an execution: per step path what became of it. A fold over the history.

Theory of operation. Each running list of steps makes a chain of events: every event names its cause, another event. So
the fold keeps the last event of each list that is open, and knows by an event's cause in which list it happened. A
step inside a choice belongs to the list that the choice is in. What is kept is bounded by the lists that are open at
once (`live_scopes_max`) and by the steps of the definition, however long the history is.

A path names a step with the steps around it: `pack[].label` is the step `label` of all iterations of the foreach
`pack`, counted together; `ship[1].book` is in the second branch of the parallel step `ship`; `check.refund` in an
option of the choice `check`. Of a single event the fold also knows the iteration: `pack[17].label`.

The command line folds the events that it reads in the same way, so this module imports little.
"""

from typing import Final, NamedTuple

from flowserver.machine.event_details import HistoryEvent, facts_of, is_in, number_in, text_in
from flowserver.machine.events import EventType
from flowserver.machine.foreach_iterations import INDEX_MAX, Loops
from flowserver.machine.step_entries import Entry, From, OpenList, level_of, prefixes
from flowserver.machine.step_summary import (
    ATTEMPT_EVENTS,
    EDGE_BYTES,
    VISIT_BYTES,
    Edge,
    EdgeKind,
    StepStatus,
    StepSummary,
)

ENTRY_BYTES: Final = 1_000
"""About what a step, an open list or an unfinished loop takes, without its path. Names are ASCII."""


class Seen(NamedTuple):
    """Where an event has happened; `path` is `pack[17]` for the begin and the end of an iteration, "" if unknown."""

    path: str
    entry: Entry | None


NOWHERE = Seen("", None)


class StepSummaries:
    """The fold. Add the events of one execution in order, from the first; large values may be left out of them."""

    def __init__(self, *, with_iterations: bool = False) -> None:
        """Each iteration of a foreach is kept by itself only `with_iterations`."""
        self.loops = Loops() if with_iterations else None
        self.last_event_id = 0
        self.last_ms: int | None = None
        """The instant of that event."""
        self.execution_status: str = _RUNNING
        """The status that it left the execution in."""
        self._steps: dict[str, StepSummary] = {}
        self._path_bytes = 0
        """Of the paths of steps and lists, of those with numbers that are open or unfinished, and of edges."""
        self._list_paths: dict[str, str] = {}
        """Each once, because very many lists of one path may be open."""
        self._lists: dict[int, OpenList] = {}
        """By the events that may cause more: the last one of each list, and StepStarted of each open step."""
        self._unfinished: dict[int, Entry] = {}
        """By StepEntered the entries of foreach steps that failed or were cut short, since the last redrive."""
        self._resumable: dict[int, Entry] = {}
        """Those from before the last redrive that were not entered again."""
        self.visits_kept = 0
        """Visits that are kept, of all steps."""
        self._redrives = 0
        """Redrives of the execution that entered its open steps again."""

    def __len__(self) -> int:
        """How much it keeps: step paths, events that may cause more, and unfinished loops."""
        kept = len(self._steps) + len(self._lists) + len(self._unfinished) + len(self._resumable)
        return kept if self.loops is None else kept + len(self.loops)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        size = len(self) * ENTRY_BYTES + self._path_bytes + self.visits_kept * VISIT_BYTES
        return size if self.loops is None else size + self.loops.size

    def steps(self) -> list[StepSummary]:
        """All paths in the order in which they were entered first; the position of a path never changes."""
        return list(self._steps.values())

    def changed_after(self, event_id: int) -> list[StepSummary]:
        """Of these paths those that an event after this one has changed, in the same order."""
        return [step for step in self._steps.values() if step.changed_event_id > event_id]

    def add(self, event: HistoryEvent) -> Seen:
        """Take an event in. One whose cause is missing from a damaged history is left out."""
        self.last_event_id, self.last_ms = event.event_id, event.time_ms
        if not event.step_name:
            self.execution_status = _ENDS.get(event.type, _RUNNING)
        if event.type == EventType.EXECUTION_STARTED:
            self._begin(event)
        elif event.type == EventType.EXECUTION_REDRIVEN:
            self._redrive(event)
        elif not event.step_name:
            if event.type == EventType.EXECUTION_SUCCEEDED:
                self._finish_list(next(iter(self._lists.values()), None))
            self._end(event)
        elif (steps := self._lists.get(event.schedule_event_id)) is not None:
            if event.type in _ITEM_ENTERED:
                seen = self._enter_item(steps, event)
            elif event.type in _ITEM_EXITED:
                seen = self._exit_item(steps, event)
            else:
                seen = self._add_in(steps, event)
            if seen.entry is not None:
                seen.entry.step.changed_event_id = event.event_id
            return seen
        return NOWHERE

    def _begin(self, event: HistoryEvent) -> None:
        self._lists = {event.event_id: OpenList("", "", head=event.event_id)}

    def _redrive(self, event: HistoryEvent) -> None:
        if is_in(facts_of(event).waiting_steps):
            for step in self._steps.values():
                if step.waiting:
                    step.run_again(event.time_ms)
            self._count_none_waiting(event)
        else:
            self._begin_again(event)

    def _begin_again(self, event: HistoryEvent) -> None:
        """What failed or was cut short does not count any more: it is entered again, or dropped.

        So is what is still open: the execution ran, and all of it waited for the redrive.
        """
        self._end(event)
        self._redrives += 1
        for step in self._steps.values():
            step.entered -= step.failed + step.cancelled
            if step.failed or step.cancelled:
                step.last_end = StepStatus.SUCCEEDED if step.succeeded else StepStatus.CANCELLED
            step.failed = step.cancelled = 0
            step.changed_event_id = event.event_id
            if step.iterations is not None:
                step.iterations.failed = step.iterations.aborted = 0
        self._path_bytes -= sum(len(entry.path) for entry in self._resumable.values())
        self._resumable, self._unfinished = self._unfinished, {}
        for entry in self._resumable.values():
            entry.leave_to_redrive()
        self._begin(event)

    def _end(self, event: HistoryEvent) -> None:
        """The execution has ended: what is still open is cut short."""
        self._count_none_waiting(event)
        for steps in set(self._lists.values()):
            self._forget(steps)
            for entry in steps.entries:
                self._close(entry, StepStatus.CANCELLED, event.time_ms)
                entry.step.changed_event_id = event.event_id
                if entry.iterations is not None:
                    entry.count(aborted=entry.iterations.running, running=-entry.iterations.running)
        self._lists = {}

    def _count_none_waiting(self, event: HistoryEvent) -> None:
        """The steps that wait for a redrive go on, or end."""
        for step in self._steps.values():
            if step.waiting:
                step.waiting, step.changed_event_id = 0, event.event_id

    def _add_in(self, steps: OpenList, event: HistoryEvent) -> Seen:
        """An event of a step in that list."""
        if event.type == EventType.STEP_ENTERED:
            return self._enter(steps, event)
        entry = steps.entries[-1] if steps.entries else None
        if entry is None:
            return NOWHERE
        entry.step.last_ms = event.time_ms
        if steps.loop is not None:
            steps.loop.note(steps.index, event)
        match event.type:
            case EventType.STEP_STARTED:
                entry.started_event_id = event.event_id
                self._take_option(entry, facts_of(event).option)
            case _ if event.type in ATTEMPT_EVENTS:
                entry.step.note_attempt(entry.visit, event)
            case EventType.STEP_SUCCEEDED:
                entry.end = StepStatus.SUCCEEDED
                if entry.has_inner:
                    self._go(entry, None)
            case EventType.STEP_FAILED:
                self._fail(steps, entry, event)
            case EventType.STEP_WAITING_FOR_REDRIVE:
                entry.step.error = entry.error = text_in(facts_of(event).error)
                entry.step.waiting += 1
            case EventType.STEP_EXITED:
                steps.entries.pop()
                self._lists.pop(entry.started_event_id, None)
                level_of(steps).came_from = entry.way_on()
                if is_in(facts_of(event).redriven):
                    entry.step.running -= 1
                    entry.step.entered -= 1
                    entry.step.end_visit(entry.visit, event.time_ms, StepStatus.FAILED, entry.error)
                else:
                    self._close(entry, entry.end, event.time_ms)
        self._move(steps, event.event_id)
        return Seen(entry.path, entry)

    def _enter(self, steps: OpenList, event: HistoryEvent) -> Seen:
        before, numbered = prefixes(steps)
        path = f"{before}{event.step_name}"
        step = self._steps.get(path)
        if step is None:
            step = StepSummary(path, event.time_ms, event.time_ms, began_ms=event.time_ms, seen_redrives=self._redrives)
            self._steps[path] = step
            self._path_bytes += 2 * len(path)  # with that of its list, which is shorter
        elif step.seen_redrives != self._redrives:
            step.seen_redrives = self._redrives
            step.run_again(event.time_ms)
        step.entered += 1
        step.running += 1
        step.last_ms = event.time_ms
        self._move(steps, event.event_id)
        self._go(level_of(steps), step.path)
        resumes = number_in(facts_of(event).resumes, 0)
        entry = Entry(step, f"{numbered}{event.step_name}", event.event_id, is_resumed=resumes > 0)
        self.visits_kept -= len(step.visits)
        entry.visit = step.begin_visit(event.time_ms)
        self.visits_kept += len(step.visits)
        if not entry.is_resumed:
            entry.came_from = From(step, EdgeKind.OPTION)
        if steps.entries:
            steps.entries[-1].has_inner = True
        if self._resumable:
            resumed = self._resumable.pop(resumes, None)
            if resumed is not None:
                self._path_bytes -= len(resumed.path)
                entry.go_on(resumed)
        if self.loops and entry.loop is None:
            self.loops.forget(entry.path)
        if steps.loop is not None:
            steps.loop.note_step(steps.index, path, event.time_ms)
        steps.entries.append(entry)
        self._path_bytes += len(entry.path)
        return Seen(entry.path, entry)

    def _fail(self, steps: OpenList, entry: Entry, event: HistoryEvent) -> None:
        facts = facts_of(event)
        entry.step.error = entry.error = text_in(facts.error)
        entry.end = StepStatus.CAUGHT if is_in(facts.caught_by) else StepStatus.FAILED
        entry.rule = facts.catch_rule if isinstance(facts.catch_rule, int) else None
        steps.has_failed = entry.end is StepStatus.FAILED

    def _take_option(self, entry: Entry, option: object) -> None:
        name = entry.take_option(option) if is_in(option) else None
        if name is not None and not entry.is_resumed:
            options = entry.step.options
            if name not in options:
                self._path_bytes += EDGE_BYTES
            options[name] = options.get(name, 0) + 1

    def _go(self, level: "Entry | OpenList", to: str | None) -> None:
        """Count the way to that step, or to the end of the list; none leads to a step that a redrive enters again."""
        came_from, level.came_from = level.came_from, None
        if came_from is None:
            return
        step, edge = came_from.step, Edge(to, came_from.kind, came_from.number)
        if edge not in step.edges:
            self._path_bytes += EDGE_BYTES  # the path is the step's
        step.edges[edge] = step.edges.get(edge, 0) + 1
        step.changed_event_id = self.last_event_id

    def _finish_list(self, steps: OpenList | None) -> None:
        if steps is not None and not steps.entries:
            self._go(steps, None)

    def _enter_item(self, steps: OpenList, event: HistoryEvent) -> Seen:
        """A branch or iteration of the list's innermost step begins."""
        if not steps.entries:
            return NOWHERE
        entry = steps.entries[-1]
        facts = facts_of(event)
        index, total = number_in(facts.index, entry.opened), number_in(facts.total, 0)
        is_resumed = entry.is_resumed and (entry.iterations is None or index < entry.opened)
        entry.opened = max(entry.opened, index + 1)
        entry.step.last_ms = event.time_ms
        if steps.loop is not None:
            steps.loop.note(steps.index, event)
        is_iteration = event.type == EventType.ITERATION_ENTERED
        if is_iteration:
            known = 0 if entry.iterations is None else entry.iterations.total
            entry.count(total=max(known, entry.opened, total) - known, running=1)
        path = f"{entry.step.path}[{'' if is_iteration else index}]"
        numbered = f"{entry.path}[{index}]"
        path = self._list_paths.setdefault(f"{path}.", f"{path}.")
        opened = OpenList(path, f"{numbered}.", steps, head=event.event_id, loop=steps.loop, index=steps.index)
        if not is_resumed:
            kind, number = (EdgeKind.ITERATION, None) if is_iteration else (EdgeKind.BRANCH, index)
            opened.came_from = From(entry.step, kind, number)
        if is_iteration and self.loops is not None and 0 <= index < INDEX_MAX:
            if entry.loop is None:
                entry.loop = self.loops.enter(entry.path, entry.step.path)
            self.loops.begin(entry.loop, index, total, event.time_ms)
            opened.loop, opened.index = entry.loop, index
        self._lists[event.event_id] = opened
        self._path_bytes += len(numbered) + 1
        return Seen(numbered, entry)

    def _exit_item(self, inner: OpenList, event: HistoryEvent) -> Seen:
        self._forget(inner)
        steps = inner.around
        if steps is None or not steps.entries:
            return NOWHERE
        entry = steps.entries[-1]
        entry.step.last_ms = event.time_ms
        is_cancelled = is_in(facts_of(event).cancelled)
        if not (is_cancelled or inner.has_failed):
            self._finish_list(inner)
        if event.type == EventType.ITERATION_EXITED and inner.loop is not None:
            inner.loop.end(inner.index, event.time_ms, failed=inner.has_failed, cancelled=is_cancelled)
        if steps.loop is not None:
            steps.loop.note(steps.index, event)
        if event.type == EventType.ITERATION_EXITED and entry.iterations is not None:
            if inner.has_failed:
                entry.count(failed=1, running=-1)
            elif is_cancelled:
                entry.count(aborted=1, running=-1)
            else:
                entry.count(done=1, running=-1)
        if not is_cancelled:  # no event follows from a cancelled one
            self._move(steps, event.event_id)
        return Seen(inner.numbered[:-1], entry)

    def _close(self, entry: Entry, end: StepStatus, at_ms: int) -> None:
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
        step.end_attempt(at_ms, end)
        step.end_visit(entry.visit, at_ms, end, entry.error if end is not StepStatus.SUCCEEDED else None)
        if step.status is StepStatus.SUCCEEDED:
            step.error = None
        if entry.loop is not None:
            entry.loop.cut_short(at_ms)
        if entry.iterations is not None and end is not StepStatus.SUCCEEDED:
            self._unfinished[entry.entered_event_id] = entry
        else:
            self._path_bytes -= len(entry.path)

    def _forget(self, steps: OpenList) -> None:
        """The list is over."""
        self._lists.pop(steps.head, None)
        self._path_bytes -= len(steps.numbered)

    def _move(self, steps: OpenList, event_id: int) -> None:
        """This is the list's last event now. The one before causes no more, unless an open step started with it."""
        if not steps.entries or steps.head != steps.entries[-1].started_event_id:
            self._lists.pop(steps.head, None)
        self._lists[event_id] = steps
        steps.head = event_id


_RUNNING: Final = "Running"
_ENDS: Final[dict[str, str]] = {
    EventType.EXECUTION_SUCCEEDED: "Succeeded",
    EventType.EXECUTION_FAILED: "Failed",
    EventType.EXECUTION_STOPPED: "Stopped",
    EventType.EXECUTION_TIMED_OUT: "TimedOut",
}
"""Ends of executions, and the statuses of `machine/state.py` that they leave."""

_ITEM_ENTERED = (EventType.BRANCH_ENTERED, EventType.ITERATION_ENTERED)
_ITEM_EXITED = (EventType.BRANCH_EXITED, EventType.ITERATION_EXITED)
