"""A test made from the history of an execution that has ended: its input, the answers to its calls, and what it did.

It imports little: the command line makes tests of what it reads from a server.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from flowserver.base.clock import format_instant
from flowserver.base.durations import shown_duration
from flowserver.base.json_values import Json, JsonObject
from flowserver.flowtests.secret_values import SecretValues

PATH_STEPS_MAX: Final = 1_000
"""Steps of a path that a test expects; a longer path is left out."""

_DATA: Final = ("return", "succeed", "output", "cause")
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
    """The document of a test file, how many values in it were hidden, and how many secrets were not."""

    document: JsonObject
    hidden: int
    kept: int
    """Those that the definition itself holds."""


def record(
    events: Iterable[RecordedEvent], *, definition: str, flow: str, execution: str, definition_text: str = ""
) -> Recording:
    """Make a test file with one test; `definition` is the file of the definition, as the test file names it.

    Raises NotRecordable for an execution that runs, was stopped or was redriven. Secrets are hidden, but for those that
    the definition's text compares with: it holds them in clear text, and the test would take another way without them.
    """
    fold = _Fold()
    for event in events:
        fold.add(event)
    test: JsonObject = {"name": f"as {execution}", "executionName": execution, "startedAt": fold.started_at}
    expect = fold.expect()
    plain = definition_text.replace('\\"', '"')
    secrets = SecretValues(lambda value: f'"{value}"' in plain or f"`{value}`" in plain)
    documents = [*fold.replies(), expect]
    secrets.learn(fold.input)
    for document in documents:
        secrets.learn(_data_of(document))
    for document in documents:
        document.update(secrets.copy(_data_of(document)))
    parts = {"input": secrets.copy(fold.input), **fold.mocks, "expect": expect}
    test |= {key: value for key, value in parts.items() if value}
    return Recording({"flow": definition, "name": flow, "tests": [test]}, secrets.count, len(secrets.kept))


def _data_of(document: JsonObject) -> JsonObject:
    """What a reply or an expectation has of the execution's data."""
    return {name: document[name] for name in _DATA if name in document}


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

    def replies(self) -> Iterator[JsonObject]:
        """Every answer to a call or a callback."""
        for mocks in self.mocks.values():
            for replies in mocks.values():
                yield from replies

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
