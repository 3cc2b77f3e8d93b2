"""A test made from the history of an execution that has ended: its input, the answers to its calls, and what it did.

It imports little: the command line makes tests of what it reads from a server.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from flowserver.base.clock import format_instant
from flowserver.base.durations import shown_duration
from flowserver.base.hidden_values import HIDDEN
from flowserver.base.json_values import Json, JsonObject

PATH_STEPS_MAX: Final = 1_000
"""Steps of a path that a test expects; a longer path is left out."""

_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|api[-_]?key|authorization|credential|private[-_]?key|cookie", re.IGNORECASE
)
_CALLBACK: Final = "waitForCallback"
_ENDS: Final = ("TaskSucceeded", "TaskFailed", "TaskSubmitFailed", "TaskTimedOut")
"""The events that end an attempt."""


class NotRecordable(Exception):
    """No test can repeat the execution; the message says why."""


class RecordedEvent(NamedTuple):
    """One event of the history, with the path of its step."""

    type: str
    path: str
    time_ms: int
    detail: JsonObject


class Recording(NamedTuple):
    """The document of a test file, and how many values in it were hidden."""

    document: JsonObject
    hidden: int


def record(events: Iterable[RecordedEvent], *, definition: str, flow: str, execution: str) -> Recording:
    """Make a test file with one test; `definition` is the file of the definition, as the test file names it.

    Raises NotRecordable for an execution that runs, was stopped or was redriven. The values of members whose names
    sound like secrets are hidden.
    """
    fold = _Fold()
    for event in events:
        fold.add(event)
    masked = _Masked()
    test: JsonObject = {"name": f"as {execution}", "executionName": execution, "startedAt": fold.started_at}
    parts = {"input": fold.input, **fold.mocks, "expect": fold.expect()}
    test |= {key: value for key, value in parts.items() if value}
    document = {"flow": definition, "name": flow, "tests": [masked.copy(test)]}
    return Recording(document, masked.count)


class _Fold:
    """What the events say."""

    def __init__(self) -> None:
        self.started_at = ""
        self.input: Json = {}
        self.mocks: dict[str, dict[str, list[JsonObject]]] = {"steps": {}, "callbacks": {}}
        self._path: list[str] = []
        self._end: JsonObject = {}
        self._scheduled: dict[str, RecordedEvent] = {}

    def add(self, event: RecordedEvent) -> None:
        """Take in the next event."""
        kind = event.type
        if kind == "ExecutionStarted":
            self.started_at, self.input = format_instant(event.time_ms), event.detail["input"]
        elif kind == "StepEntered":
            self._path.append(event.path)
        elif kind == "TaskScheduled":
            self._scheduled[event.path] = event
        elif kind in _ENDS:
            self._add_reply(event)
        elif kind == "ExecutionRedriven":
            raise NotRecordable("it was redriven, so its history is of several runs")
        elif kind == "ExecutionStopped":
            raise NotRecordable("it was stopped, and no test can stop an execution")
        elif kind.startswith("Execution"):
            self._end = {"status": kind.removeprefix("Execution"), **event.detail}

    def expect(self) -> JsonObject:
        """What the test expects."""
        if not self._end:
            raise NotRecordable("it has not ended")
        names = ("output",) if self._end["status"] == "Succeeded" else ("error", "cause")
        found = {"status": self._end["status"], **{name: self._end[name] for name in names if self._end.get(name)}}
        if len(self._path) <= PATH_STEPS_MAX:
            found["path"] = self._path
        return found

    def _add_reply(self, event: RecordedEvent) -> None:
        scheduled = self._scheduled[event.path]
        is_report = scheduled.detail.get("pattern") == _CALLBACK and event.type != "TaskSubmitFailed"
        if event.type == "TaskSucceeded":
            reply: JsonObject = {"succeed" if is_report else "return": event.detail["output"]}
        else:
            cause = event.detail.get("cause")
            reply = {"fail" if is_report else "error": event.detail["error"], **({"cause": cause} if cause else {})}
        if event.time_ms > scheduled.time_ms:
            reply["after"] = shown_duration(event.time_ms - scheduled.time_ms)
        self.mocks["callbacks" if is_report else "steps"].setdefault(event.path, []).append(reply)


class _Masked:
    """Copies documents without secrets."""

    def __init__(self) -> None:
        self.count = 0

    def copy(self, value: Any) -> Any:
        """The value, with the values of secret members hidden."""
        if isinstance(value, dict):
            return {key: self._member(key, each) for key, each in value.items()}
        return [self.copy(each) for each in value] if isinstance(value, list) else value

    def _member(self, key: str, value: Any) -> Any:
        if not _SECRET.search(key):
            return self.copy(value)
        if isinstance(value, list):
            return [self._member(key, each) for each in value]
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            self.count += 1
            return HIDDEN
        return self.copy(value)
