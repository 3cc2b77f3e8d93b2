"""Who waits for an execution to change: long polls, synchronous starts, live histories."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class Watchers:
    """Wakes waiters after a commit of this node; those who also wait for other nodes look again now and then."""

    def __init__(self) -> None:
        self._for_changes: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._for_ends: dict[str, set[asyncio.Event]] = defaultdict(set)
        self.released = False

    def watch_changes(self, execution_id: str) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever the execution changes; read the state after entering, then wait."""
        return _waiting(self._for_changes, execution_id)

    def watch_end(self, execution_id: str) -> AbstractContextManager[asyncio.Event]:
        """An event that is set when the execution ends; read the state after entering, then wait."""
        return _waiting(self._for_ends, execution_id)

    def notify(self, execution_id: str, *, ended: bool) -> None:
        """The execution has changed, and perhaps ended."""
        for changed in self._for_changes.get(execution_id, ()):
            changed.set()
        if ended:
            for over in self._for_ends.get(execution_id, ()):
                over.set()

    def release(self) -> None:
        """The server stops: wake everybody, for good; whoever sees `released` waits no longer."""
        self.released = True
        for events in (*self._for_changes.values(), *self._for_ends.values()):
            for event in events:
                event.set()


@contextmanager
def _waiting(events: dict[str, set[asyncio.Event]], execution_id: str) -> Iterator[asyncio.Event]:
    event = asyncio.Event()
    events[execution_id].add(event)
    try:
        yield event
    finally:
        events[execution_id].discard(event)
        if not events[execution_id]:
            del events[execution_id]
