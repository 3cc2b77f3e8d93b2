"""Notices between nodes, so that work starts before the next periodic read. They are sent after the commit, outside its
transaction, and no promise depends on their arrival.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from flowserver.base.json_values import InvalidJson, JsonObject, dump_json, load_json_object

IDS_PER_NOTICE = 150
"""Execution ids in one notice; each has 36 characters, two quotes and a comma, and PostgreSQL takes 8,000 bytes."""


DROPPED_PER_NOTICE = 80
"""Calls in one notice; each has an execution id and two numbers of ten digits at most, brackets and commas."""

QUEUES_PER_NOTICE = 60
"""Names of queues in one notice; each has 120 characters at most."""


@dataclass(slots=True)
class Notice:
    """One node's news, collected until it is sent."""

    changed: dict[str, bool] = field(default_factory=dict)
    """Executions that changed; True for those that have ended or were parked."""
    due: dict[str, int] = field(default_factory=dict)
    """By the name of a source of due rows, the earliest instant (ms) that one was set to be due at."""
    sweep: bool = False
    """There is work that no node holds."""
    functions: bool = False
    """A function was registered or removed."""
    queues: set[str] = field(default_factory=set)
    """Queues with new messages, or with messages that become visible sooner."""
    dropped: list[tuple[str, int, int]] = field(default_factory=list)
    """Calls, by (execution_id, scope_id, wait_id), that no step waits for: the node that makes one drops it."""
    dropped_unless_begun: list[tuple[str, int, int]] = field(default_factory=list)
    """The same, for calls that go on if they are under way."""
    stops: bool = False
    """This node stops. Only its own thread waits for this one, which then does not wait for its next beat."""

    def note_due(self, source: str, instant_ms: int) -> None:
        """A row of the source is due at that instant (ms)."""
        self.due[source] = min(instant_ms, self.due.get(source, instant_ms))

    def texts(self, sender: str) -> Iterator[str]:
        """The notice in pieces that can be sent."""
        rest: JsonObject = {"from": sender, "sweep": self.sweep, "functions": self.functions, "due": {**self.due}}
        names = iter(sorted(self.queues))
        while some := list(islice(names, QUEUES_PER_NOTICE)):
            yield dump_json({"from": sender, "queues": some})
        for name, keys in (("dropped", self.dropped), ("droppedUnlessBegun", self.dropped_unless_begun)):
            calls = iter(keys)
            while gone := list(islice(calls, DROPPED_PER_NOTICE)):
                yield dump_json({"from": sender, name: [list(key) for key in gone]})
        ids = iter(self.changed.items())
        while part := dict(islice(ids, IDS_PER_NOTICE)):
            changed = [name for name, over in part.items() if not over]
            ended = [name for name, over in part.items() if over]
            yield dump_json({**rest, "changed": changed, "ended": ended})
            rest = {"from": sender}
        if len(rest) > 1:
            yield dump_json(rest)


def read_notice(text: str, receiver: str) -> Notice | None:
    """The notice of another node; None for the receiver's own, and for text that is no notice."""
    try:
        value = load_json_object(text)
        if value.get("from") == receiver:
            return None
        changed = dict.fromkeys(value.get("changed", ()), False) | dict.fromkeys(value.get("ended", ()), True)
        return Notice(
            changed=changed,
            due={str(source): int(at) for source, at in dict(value.get("due", {})).items()},
            sweep=value.get("sweep") is True,
            functions=value.get("functions") is True,
            queues=set(map(str, value.get("queues", ()))),
            dropped=_calls(value.get("dropped", ())),
            dropped_unless_begun=_calls(value.get("droppedUnlessBegun", ())),
        )
    except (InvalidJson, TypeError, ValueError):
        return None


def _calls(keys: Any) -> list[tuple[str, int, int]]:
    """Raises TypeError or ValueError for what is no list of calls."""
    return [(str(name), int(scope), int(wait)) for name, scope, wait in keys]
