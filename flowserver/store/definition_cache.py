"""Compiled flows by definition id. Definitions are immutable, so a cached flow is never stale."""

from cachetools import LRUCache
from sqlalchemy import Connection

from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.graph import Flow
from flowserver.language.parser import parse_stored
from flowserver.store.flows import load_definition

CACHED_FLOWS_MAX = 1_000


class DefinitionUnusable(Exception):
    """The stored definition is missing or no longer accepted; its executions are parked."""


class DefinitionCache:
    """An LRU cache of compiled flows. For one thread."""

    def __init__(self) -> None:
        self._flows: LRUCache[str, Flow] = LRUCache(CACHED_FLOWS_MAX)

    def get(self, connection: Connection, definition_id: str) -> Flow:
        """The compiled definition; raises DefinitionUnusable."""
        flow = self._flows.get(definition_id)
        if flow is None:
            flow = self._flows[definition_id] = self._compile(connection, definition_id)
        return flow

    def _compile(self, connection: Connection, definition_id: str) -> Flow:
        text = load_definition(connection, definition_id)
        if text is None:
            raise DefinitionUnusable(f"definition {definition_id} is gone")
        try:
            return parse_stored(text)
        except DefinitionRejected as error:
            raise DefinitionUnusable(f"definition {definition_id} is not accepted: {error.message}") from error
