"""Wakes the requests that wait for an execution: long polls, synchronous starts, live histories."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from flowserver.concurrency.waiting import Signal
from flowserver.machine.events import Event
from flowserver.machine.state import Execution
from flowserver.store.executions.committed_ends import End


@dataclass(slots=True, eq=False)
class Watch:
    """One request that waits."""

    woken: Signal = field(default_factory=Signal)
    """Set when it is time to read the execution."""
    end: End | None = None
    """The end, if this node committed it; if None, read the execution."""
    news: list[Event] = field(default_factory=list)
    """Events that this node has committed, for a request that watches changes and takes them away."""


class Watchers:
    """Wakes requests after a commit of this node.

    Other nodes' notices wake them too, but may be lost: a waiting request also reads again periodically.

    A watch is a context: enter it, read the execution, then wait. So no change between the two is missed.
    """

    def __init__(self) -> None:
        self._for_changes: dict[str, set[Watch]] = defaultdict(set)
        self._for_ends: dict[str, set[Watch]] = defaultdict(set)
        self._for_names: dict[tuple[str, str], set[Watch]] = defaultdict(set)
        self.is_stopping = False

    def watch_changes(self, execution_id: str) -> AbstractContextManager[Watch]:
        """Woken by each change of the execution."""
        return _waiting(self._for_changes, execution_id, Watch())

    def watch_end(self, execution_id: str, watch: Watch | None = None) -> AbstractContextManager[Watch]:
        """Woken when the execution ends, here or on another node."""
        return _waiting(self._for_ends, execution_id, watch or Watch())

    def watch_name(self, flow_name: str, name: str) -> AbstractContextManager[Watch]:
        """Woken when this node ends an execution of that name, for a request that does not know its id yet."""
        return _waiting(self._for_names, (flow_name, name), Watch())

    def notify_change(self, execution: Execution, events: Sequence[Event] = ()) -> None:
        """Wake the requests after this node has committed a change of the execution, perhaps its end."""
        for watch in self._for_changes.get(execution.execution_id, ()):
            watch.news += events
            watch.woken.set()
        if execution.is_running:
            return
        by_id = self._for_ends.get(execution.execution_id, ())
        by_name = self._for_names.get((execution.flow_name, execution.name), ())
        if by_id or by_name:
            end = End.of(execution)
            for watch in (*by_id, *by_name):
                watch.end = end
                watch.woken.set()

    def wake(self, execution_id: str, *, ended: bool) -> None:
        """Wake requests, which then read the execution. `ended`: it ended or is parked, so those that wait for its end
        wake too.
        """
        _wake(self._for_changes, execution_id)
        if ended:
            _wake(self._for_ends, execution_id)

    def stop(self) -> None:
        """Wake all requests because the server stops. A request that sees `is_stopping` waits no longer."""
        self.is_stopping = True
        for watches in (*self._for_changes.values(), *self._for_ends.values(), *self._for_names.values()):
            for watch in watches:
                watch.woken.set()


def _wake(waiting: dict[str, set[Watch]], key: str) -> None:
    for watch in waiting.get(key, ()):
        watch.woken.set()


@contextmanager
def _waiting(waiting: dict[Any, set[Watch]], key: Any, watch: Watch) -> Iterator[Watch]:
    waiting[key].add(watch)
    try:
        yield watch
    finally:
        waiting[key].discard(watch)
        if not waiting[key]:
            del waiting[key]
