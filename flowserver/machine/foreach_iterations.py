"""What became of each iteration of the foreach steps of an execution, in some 30 bytes for an iteration."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flowserver.machine.event_details import HistoryEvent, facts_of, text_in
from flowserver.machine.events import EventType
from flowserver.machine.step_summary import Iterations, StepStatus

ITERATION_BYTES: Final = 32
TEXT_BYTES: Final = 200
"""What an error or the path of a step takes besides its text."""

INDEX_MAX: Final = 1_000_000
"""A foreach has fewer iterations. Only a damaged history has higher numbers."""

_FAILURES: Final = frozenset(
    (
        EventType.TASK_FAILED,
        EventType.TASK_TIMED_OUT,
        EventType.TASK_SUBMIT_FAILED,
        EventType.STEP_FAILED,
        EventType.STEP_WAITING_FOR_REDRIVE,
    )
)
_STATUSES: Final = (None, StepStatus.RUNNING, StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED)
"""By their numbers; None: it has not begun."""
_NOT_BEGUN, _RUNNING, _SUCCEEDED, _FAILED, _CANCELLED = range(len(_STATUSES))
_KEPT: Final = bytes(each if each == _SUCCEEDED else _NOT_BEGUN for each in range(256))
"""What each becomes when a redrive enters the loop again."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration that has begun; instants in ms."""

    index: int
    path: str
    """`pack[17]`."""
    status: StepStatus
    first_ms: int
    """When it began; if a redrive has begun it again, then."""
    last_ms: int
    """The last event of its own steps, or of an iteration in it that began or ended."""
    step: str | None
    """The step in it that was entered last, by its path within the iteration: `label`."""
    attempts: int
    """Of its tasks; not those of a foreach in it."""
    error: str | None
    """The last error of its steps; None once that step has succeeded."""


class Loop:
    """The iterations of one entry of a foreach step, and of the entries of redrives that continue it."""

    __slots__ = ("_attempts", "_errors", "_first", "_last", "_status", "_steps", "_texts", "inner_path", "total")

    def __init__(self, step_path: str, texts: "_Texts") -> None:
        """`step_path` is that of the step without numbers."""
        self.inner_path = f"{step_path}[]."
        self.total = 0
        self._texts = texts
        self._status = bytearray()
        self._first, self._last = array("q"), array("q")
        self._attempts, self._steps, self._errors = array("I"), array("I"), array("I")

    def __len__(self) -> int:
        return len(self._status)

    def __getstate__(self) -> tuple[str, "_Texts", int, bytes, bytes]:
        """Few objects, because there may be thousands of loops to pickle."""
        columns = b"".join(column.tobytes() for column in self._columns())
        return self.inner_path, self._texts, self.total, bytes(self._status), columns

    def __setstate__(self, state: tuple[str, "_Texts", int, bytes, bytes]) -> None:
        self.inner_path, self._texts, self.total, status, columns = state
        self._status = bytearray(status)
        self._first, self._last = array("q"), array("q")
        self._attempts, self._steps, self._errors = array("I"), array("I"), array("I")
        begin = 0
        for column in self._columns():
            end = begin + len(status) * column.itemsize
            column.frombytes(columns[begin:end])
            begin = end

    def _columns(self) -> tuple["array[int]", ...]:
        return self._first, self._last, self._attempts, self._steps, self._errors

    def begin(self, index: int, total: int, at_ms: int) -> None:
        """An iteration begins."""
        missing = index + 1 - len(self._status)
        if missing > 0:
            self._status.extend(bytes(missing))
            for column in self._columns():
                column.extend([0] * missing)
        self.total = max(self.total, total, len(self._status))
        self._status[index] = _RUNNING
        self._first[index] = self._last[index] = at_ms
        self._attempts[index] = self._steps[index] = self._errors[index] = 0

    def note(self, index: int, event: HistoryEvent) -> None:
        """An event of one of its steps, or of what that has opened."""
        self._last[index] = event.time_ms
        match event.type:
            case EventType.TASK_SCHEDULED:
                self._attempts[index] += 1
            case EventType.STEP_SUCCEEDED:
                self._errors[index] = 0
            case _ if event.type in _FAILURES:
                self._errors[index] = self._texts.number_of(text_in(facts_of(event).error) or "")

    def note_step(self, index: int, path: str, at_ms: int) -> None:
        """It enters a step; the path is without numbers."""
        self._last[index] = at_ms
        self._steps[index] = self._texts.number_of(path)

    def end(self, index: int, at_ms: int, *, failed: bool = False, cancelled: bool = False) -> None:
        """An iteration ends."""
        self._last[index] = at_ms
        self._status[index] = _FAILED if failed else _CANCELLED if cancelled else _SUCCEEDED
        if not (failed or cancelled):
            self._errors[index] = 0

    def cut_short(self, at_ms: int) -> None:
        """Cancel the iterations that still run."""
        index = self._status.find(_RUNNING)
        while index >= 0:
            self.end(index, at_ms, cancelled=True)
            index = self._status.find(_RUNNING, index)

    def keep_finished(self) -> None:
        """A redrive goes on with the loop: what has not succeeded is yet to begin."""
        self._status = self._status.translate(_KEPT)

    def counts(self) -> Iterations:
        """How many there are of each status."""
        of = self._status.count
        return Iterations(self.total, of(_SUCCEEDED), of(_FAILED), of(_CANCELLED), of(_RUNNING))

    def find(self, path: str, begin: int, status: StepStatus | None) -> Iterator[Iteration]:
        """Iterations that have begun, by their index from `begin` on; `path` is that of the step with its numbers."""
        wanted = None if status is None else _STATUSES.index(status)
        index = begin if wanted is None else self._status.find(wanted, begin)
        while 0 <= index < len(self._status):
            found = _STATUSES[self._status[index]]
            if found is not None:
                yield self._iteration(index, path, found)
            index = index + 1 if wanted is None else self._status.find(wanted, index + 1)

    def _iteration(self, index: int, path: str, status: StepStatus) -> Iteration:
        step = self._texts.text_of(self._steps[index])
        return Iteration(
            index,
            f"{path}[{index}]",
            status,
            self._first[index],
            self._last[index],
            step and step.removeprefix(self.inner_path),
            self._attempts[index],
            self._texts.text_of(self._errors[index]),
        )


class _Texts:
    """Paths and errors, each once."""

    __slots__ = ("_numbers", "_texts", "size")

    def __init__(self) -> None:
        self.size = 0
        self._numbers = {"": 0}
        self._texts = [""]

    def number_of(self, text: str) -> int:
        """Its number; 0 for none."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
            self.size += len(text) + TEXT_BYTES
        return number

    def text_of(self, number: int) -> str | None:
        """The text of a number."""
        return self._texts[number] or None


class Loops:
    """The last entry of each foreach step of an execution, by the path of the step with its numbers."""

    def __init__(self) -> None:
        self._texts = _Texts()
        self._loops: dict[str, Loop] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._loops)

    @property
    def size(self) -> int:
        """About how many bytes the iterations take, with paths and errors; the loops themselves are not counted."""
        return self._bytes + self._texts.size

    def enter(self, path: str, step_path: str) -> Loop:
        """A foreach step begins its first iteration; what it did when it was entered before is forgotten."""
        self.forget(path)
        loop = self._loops[path] = Loop(step_path, self._texts)
        self._bytes += len(path)
        return loop

    def begin(self, loop: Loop, index: int, total: int, at_ms: int) -> None:
        """An iteration begins."""
        before = len(loop)
        loop.begin(index, total, at_ms)
        self._bytes += (len(loop) - before) * ITERATION_BYTES

    def forget(self, path: str) -> None:
        """The step is entered again."""
        loop = self._loops.pop(path, None)
        if loop is not None:
            self._bytes -= len(path) + len(loop) * ITERATION_BYTES

    def all(self) -> Iterator[Loop]:
        """The loops."""
        return iter(self._loops.values())

    def get(self, path: str) -> Loop | None:
        """The loop of a step; None if it has begun no iteration."""
        return self._loops.get(path)
