"""Reads calls that have waited for a slot from their rows again.

A turn's commit stores all that its calls are made from, so a waiting call needs no memory except its key.
"""

import logging
from functools import partial

from sqlalchemy import Connection

from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.context import EngineContext
from flowserver.language.graph import TaskStep
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.steps.task import order_of
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.due import TaskKey
from flowserver.store.executions.loading import find_calling_scope

log = logging.getLogger(__name__)

OrderedCall = tuple[Caller, InvokeTask]


class CallReader:
    """Reads the calls that steps have ordered and that are leased to this node."""

    def __init__(self, context: EngineContext) -> None:
        self._reader = context.reader
        self._tokens = context.tokens
        self._lease = context.lease
        self._definitions = DefinitionCache()

    async def read(self, key: TaskKey) -> OrderedCall | None:
        """The call as it was ordered; None if no step waits for it, or it is not leased to this node.

        Also None if its rows are damaged: recovery finds that the call is lost and orders it again, which reports the
        damage.
        """
        try:
            return await retry_until_available(lambda: self._reader.ask(partial(self._find, key=key)), gives_up=True)
        except Exception as error:
            which = {"execution_id": key[0], "error": error}
            log.warning("a call of execution %(execution_id)s cannot be read: %(error)s", which)
            return None

    def _find(self, connection: Connection, key: TaskKey) -> OrderedCall | None:
        found = find_calling_scope(connection, self._lease.node_id, *key)
        if found is None:
            return None
        flow = self._definitions.get(connection, found.definition_id)
        step = flow.lists[found.scope.list_id].steps[found.scope.step_index]
        assert isinstance(step, TaskStep), "only tasks order calls"
        order = order_of(key[0], found.scope, step, self._tokens.make)
        return Caller(key[0], found.flow_name, found.execution_name), order
