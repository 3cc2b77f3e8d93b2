"""Of every event of an execution the path of its step, with branch and iteration: `pack[17].label`.

No event stores its path: it follows from the events before. A path is kept once, and four bytes for each event.
"""

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Protocol

from flowserver.machine.event_details import HistoryEvent
from flowserver.machine.step_summary_fold import Seen, StepSummaries

EVENT_BYTES: Final = 4
PATH_BYTES: Final = 180
"""What a path takes besides its text."""


def matches_path(path: str, wanted: str) -> bool:
    """Whether the path of an event is that which is wanted.

    `pack[17]` is an iteration, or a branch, with all that is in it. `[]` is any of them: `pack[].label`.
    """
    return _pattern(wanted).fullmatch(path) is not None


@lru_cache(maxsize=100)
def _pattern(wanted: str, *, is_exact: bool = False) -> re.Pattern[str]:
    below = r"(\..*)?" if wanted.endswith("]") and not is_exact else ""
    return re.compile(re.escape(wanted).replace(r"\[\]", r"\[[0-9]+\]") + below)


class Summaries(Protocol):
    """A fold that knows where each event has happened."""

    @property
    def last_event_id(self) -> int:
        """The last event that it has taken in."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""

    def add(self, event: HistoryEvent) -> Seen:
        """Take the next event in."""


class EventPaths:
    """The fold. Add the events of one execution in order, from the first; large values may be left out of them."""

    def __init__(self, summaries: Summaries | None = None) -> None:
        """`summaries` is a fold of the same events, which takes them in with this one; without it one is made."""
        self._summaries: Summaries = StepSummaries() if summaries is None else summaries
        self._numbers: dict[str, int] = {"": 0}
        self._paths = [""]
        """By their numbers."""
        self._first, self._last = array("I", [0]), array("I", [0])
        """Of each path the first event and the last, by its number."""
        self._path_bytes = 0
        self._of_event = array("I", [0])

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self._summaries.size + self._path_bytes + len(self._of_event) * EVENT_BYTES

    @property
    def last_event_id(self) -> int:
        """The last event that was added."""
        return self._summaries.last_event_id

    def add(self, event: HistoryEvent) -> str:
        """Take an event in, and return its path; the step's name if it is unknown, because the history is damaged."""
        path = self._summaries.add(event).path or event.step_name
        missing = event.event_id - len(self._of_event)
        if missing > 0:
            self._of_event.extend([0] * missing)
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self._paths)
            self._paths.append(path)
            self._first.append(event.event_id)
            self._last.append(event.event_id)
            self._path_bytes += len(path) + PATH_BYTES
        self._last[number] = event.event_id
        self._of_event.append(number)
        return path

    def find(self, wanted: str, *, is_exact: bool = False) -> list[int]:
        """The ids of the events with a path, in order."""
        if "[]" not in wanted and (is_exact or not wanted.endswith("]")):
            chosen = {self._numbers[wanted]} if wanted in self._numbers else set()
        else:
            matches = _pattern(wanted, is_exact=is_exact).fullmatch
            chosen = {number for number, path in enumerate(self._paths) if path and matches(path)}
        if not chosen:
            return []
        begin = min(self._first[number] for number in chosen)
        end = max(self._last[number] for number in chosen) + 1
        return [each for each, number in enumerate(self._of_event[begin:end], begin) if number in chosen]

    def paths_of(self, event_ids: Iterator[int]) -> list[str]:
        """The paths of these events; "" for those of the execution itself."""
        return [self._paths[self._of_event[each]] if each < len(self._of_event) else "" for each in event_ids]
