"""Who waits for an execution to change: long polls, synchronous starts, live histories."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Watchers:
    """Wakes waiters after a commit of this node; those who also wait for other nodes look again now and then."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def watch(self, execution_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever the execution changes; read the state after entering, then wait."""
        changed = asyncio.Event()
        self._waiting[execution_id].add(changed)
        try:
            yield changed
        finally:
            self._waiting[execution_id].discard(changed)
            if not self._waiting[execution_id]:
                del self._waiting[execution_id]

    def notify(self, execution_id: str) -> None:
        """The execution has changed."""
        for changed in self._waiting.get(execution_id, ()):
            changed.set()
