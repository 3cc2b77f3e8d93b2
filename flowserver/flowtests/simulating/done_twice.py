"""The property that work with a price is not done twice: a reply was lost, and the function is called anew.

A retry has the idempotency key of the first attempt, so the function can tell. A `catch` that leads to the step again,
or to another step with the same function, has another key: the function charges twice, unless its input has a key.
"""

import re
from dataclasses import dataclass
from typing import Final

from flowserver.base.json_values import JsonObject, dump_json
from flowserver.flowtests.properties import Broken
from flowserver.flowtests.property_names import DONE_TWICE
from flowserver.flowtests.records import Call, Record
from flowserver.flowtests.resource_names import title_of
from flowserver.language.graph import FunctionTarget, Span

_KEY: Final = re.compile(r"(?i)idempot|dedup|unique|(?:request|client|transaction)_?(?:id|key|token)")
"""Names of members that hold a key of the caller's own."""


@dataclass(frozen=True, slots=True)
class NotDoneTwice:
    """A function is not called again, with the same input, for work that may be done."""

    step: str
    target: FunctionTarget
    undoing: frozenset[str]
    """The steps that undo the work: after one of these it may be done again."""
    name: str = DONE_TWICE
    span: Span | None = None

    def expectation(self) -> JsonObject:
        """What a test expects instead."""
        return {"atMostOnce": [title_of(self.target)]}

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        for path, made in record.lost:
            if path == self.step:
                lost = next(call for call in reversed(record.calls[:made]) if call.path == path)
                again = None if _has_own_key(lost, record) else self._again(lost, record.calls[made:])
                if again is not None:
                    by = "it" if again.path == path else f"step {again.path}"
                    message = f"step {path} may have done its work when its reply is lost, and {by} calls the function"
                    return Broken(f"{message} again, with the same input and another idempotency key", path)
        return None

    def _again(self, lost: Call, later: list[Call]) -> Call | None:
        for call in later:
            if call.path in self.undoing:
                return None
            if call.target == lost.target and call.input == lost.input and call.key != lost.key:
                return call
        return None


def _has_own_key(call: Call, record: Record) -> bool:
    """Whether the input has something by which the function can tell that a call is repeated."""
    text = dump_json(call.input)
    return any(each in text for each in (call.execution_id, record.execution.name)) or any(
        _KEY.search(name) is not None for name in call.input
    )
