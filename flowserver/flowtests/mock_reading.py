"""Reads the mocks of a file or a test: replies of calls, reports of callbacks, sub-flows that run, real calls."""

from collections.abc import Callable, Iterator

from flowserver.base.durations import duration_seconds
from flowserver.base.json_values import Json
from flowserver.flowtests.cases import Crash, Mock, Mocks, Reply, Source, Table
from flowserver.flowtests.fields import REAL, REPORT, TABLES, real_kind
from flowserver.flowtests.real_calls import Callee
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.diagnostics import shown
from flowserver.language.fields import ObjectKind
from flowserver.language.nodes import Entry, ListNode, MapNode, Node, ScalarNode, to_json
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.retry_and_catch import INVALID_LOCAL

DURATION_HINT = "write a duration, such as 250ms, 3s, 1h30m or 2d"

Opened = Callable[[Attributes, str], Source | None]
"""The definition whose file an attribute names."""

OpenedCallee = Callable[[Attributes, str], Callee | None]
"""What a real call reaches that an attribute names."""


class MockReader:
    """Reads mocks; mistakes go into the report of the reader."""

    def __init__(self, reader: AttributeReader, opened: Opened, callee: OpenedCallee) -> None:
        self._reader = reader
        self._report = reader.report
        self._opened = opened
        self._callee = callee

    def read(self, attributes: Attributes) -> Mocks:
        """The mocks among the attributes of a file or a test."""
        return Mocks(**{name: self._table(attributes, name, kind) for name, kind in TABLES.items()})

    def _table(self, attributes: Attributes, name: str, kind: ObjectKind) -> Table:
        node = attributes.get(name, MapNode)
        return {each.name: self._mock(each, name, kind) for each in (node.entries if node else ())}

    def _mock(self, entry: Entry, name: str, kind: ObjectKind) -> Mock:
        node = entry.value
        named = (
            next((each.value for each in node.entries if each.name == "real"), None)
            if isinstance(node, MapNode)
            else None
        )
        if named is None:
            return Mock(entry.name, entry.key_span, tuple(self._replies(node, kind)))
        text = named.text if isinstance(named, ScalarNode) else ""
        real = real_kind(name, text)
        found = self._reader.read(node, real)
        if found is None:
            return Mock(entry.name, entry.key_span)
        if real is REAL:
            return Mock(entry.name, entry.key_span, real=self._opened(found, "real"))
        return Mock(
            entry.name, entry.key_span, callee=self._callee(found, "real"), after_ms=self._duration(found, "after")
        )

    def _replies(self, node: Node, kind: ObjectKind) -> Iterator[Reply]:
        items = node.items if isinstance(node, ListNode) else (node,)
        if not items:
            hint = "for a call that gets no answer write `{never: true}`"
            self._report.error("empty-list", node.span, f"this list needs {kind.title}", hint)
        for position, item in enumerate(items):
            attributes = self._reader.read(item, kind)
            if attributes is None:
                continue
            reply = self._reply(attributes, kind)
            if reply.times is None and position < len(items) - 1:
                message = "the replies after this one are never used: it answers all further calls"
                self._report.error("bad-value", attributes.key_span("always"), message, "make it the last of the list")
            yield reply

    def _reply(self, attributes: Attributes, kind: ObjectKind) -> Reply:
        is_never = self._flag(attributes, "never")
        result = self._report_of(attributes, is_never) if kind is REPORT else self._result(attributes, is_never)
        if self._flag(attributes, "always") and "times" in attributes.written:
            self._report.error("exactly-one", attributes.key_span("always"), "a reply has either `times` or `always`")
        if is_never and "after" in attributes.written:
            self._report.error("exactly-one", attributes.key_span("never"), "a reply has either `after` or `never`")
        times = self._reader.whole(attributes, "times")
        always = self._flag(attributes, "always")
        again_ms = self._duration(attributes, "again") if "again" in attributes.written else None
        return Reply(
            attributes.span,
            result,
            self._duration(attributes, "after"),
            None if always else times or 1,
            is_never,
            self._crash(attributes, always),
            again_ms,
        )

    def _crash(self, attributes: Attributes, always: bool) -> Crash | None:
        node = attributes.get("crash", ScalarNode)
        if node is None:
            return None
        if node.text not in list(Crash):
            self._report.error("bad-value", node.span, f"`crash` must be {' or '.join(Crash)}")
            return None
        if always:
            message = "a node that always crashes never gets an answer"
            self._report.error("exactly-one", attributes.key_span("crash"), message, "leave out `always`")
        return Crash(node.text)

    def _result(self, attributes: Attributes, is_never: bool) -> Result | None:
        returned = attributes.any("return")
        self._check_alternatives(attributes, "return", "error", is_never)
        if error := self._reader.text(attributes, "error"):
            return Failure(error, self._cause(attributes))
        return None if returned is None else result_of(to_json(returned))

    def _report_of(self, attributes: Attributes, is_never: bool) -> Result | None:
        succeeds = attributes.get("succeed", MapNode)
        self._check_alternatives(attributes, "succeed", "fail", is_never)
        if not is_never and not {"succeed", "fail"} & attributes.written:
            self._report.error("exactly-one", attributes.head, "a report needs `succeed`, `fail` or `never`")
        if error := self._reader.text(attributes, "fail"):
            return Failure(error, self._cause(attributes))
        return None if succeeds is None else result_of(to_json(succeeds))

    def _check_alternatives(self, attributes: Attributes, good: str, bad: str, is_never: bool) -> None:
        written = {good, bad} & attributes.written
        if len(written) == 2 or (is_never and written):
            message = f"only one of `{good}`, `{bad}` and `never` can be given"
            self._report.error("exactly-one", attributes.head, message)
        if "cause" in attributes.written and bad not in attributes.written:
            self._report.error("missing-attribute", attributes.key_span("cause"), f"a `cause` needs `{bad}`")

    def _cause(self, attributes: Attributes) -> str:
        node = attributes.get("cause", ScalarNode)
        return "" if node is None else node.text

    def _duration(self, attributes: Attributes, name: str) -> int:
        node = attributes.get(name, ScalarNode)
        if node is None:
            return 0
        seconds = duration_seconds(node.text)
        if seconds is None:
            self._report.error("bad-value", node.span, f"{shown(node.text)} is no duration", DURATION_HINT)
            return 0
        if seconds > self._reader.limits.execution_seconds_max:
            self._report.error("bad-value", node.span, "no execution takes so long", "write `never: true`")
            return 0
        return round(seconds * 1000)

    def _flag(self, attributes: Attributes, name: str) -> bool:
        node = attributes.get(name, ScalarNode)
        return node is not None and node.value is True


def result_of(value: Json) -> Result:
    """What a call that returns this value comes to: a result that is no object is an error of the function."""
    if isinstance(value, dict):
        return Success(value)
    return Failure(INVALID_LOCAL, "the function did not return a JSON object")
