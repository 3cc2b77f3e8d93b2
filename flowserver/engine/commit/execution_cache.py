"""Executions cached in memory between two turns, because this node is making a call for them.

Most messages are replies of calls, and their executions need not be loaded again. An execution that waits for an
instant, a token or a child is cached only if a foreach or parallel is open and has much data, which each of many
reports would load again. So most waiting executions cost no memory.

Three facts make a cached execution safe. A transaction first locks this node's row in `nodes`, so a node that was
declared dead cannot commit. A cached execution is used only if its version is the stored one, because other nodes and
`flowserver doctor` write too; it is evicted when its batch fails. Every save is fenced by the version. So each change
of an execution's rows must raise the version; parking, the doctor and the release of a call do so.
"""

from collections.abc import Iterable

from cachetools import FIFOCache
from sqlalchemy import Connection

from flowserver.store.executions.loading import lock_versions
from flowserver.store.executions.stored_execution import StoredExecution

EXECUTIONS_MAX = 2_000


class ExecutionCache:
    """A bounded LRU cache. Used only by the writer's thread."""

    def __init__(self, bytes_max: int) -> None:
        # A used execution is taken out and put in again, so the first one is the least recently used.
        self._kept: FIFOCache[str, StoredExecution] = FIFOCache(bytes_max, getsizeof=lambda each: each.held_bytes)

    @property
    def held_bytes(self) -> float:
        """Bytes of all its executions, as JSON; never more than `bytes_max`."""
        return self._kept.currsize

    def take(self, connection: Connection, execution_ids: Iterable[str]) -> dict[str, StoredExecution]:
        """Take the executions out whose cached version is the stored one; stale ones are evicted.

        If any was cached, all executions of these ids are locked for the transaction, in one order.
        """
        ids = list(execution_ids)
        found = {execution_id: self._kept.pop(execution_id) for execution_id in ids if execution_id in self._kept}
        if not found:
            return {}
        versions = lock_versions(connection, ids)
        return {key: stored for key, stored in found.items() if versions.get(key) == stored.version}

    def keep(self, stored: StoredExecution) -> None:
        """Cache an execution as it was committed. An execution larger than the cache evicts nothing."""
        if stored.held_bytes <= self._kept.maxsize:
            self._kept[stored.execution.execution_id] = stored
            if len(self._kept) > EXECUTIONS_MAX:
                self._kept.popitem()

    def clear(self) -> None:
        """Evict all."""
        self._kept.clear()
