"""Continues asynchronous invocations when the pause before their next attempt is over.

No node holds an invocation during its pause. The node that finds the pause over takes the invocation's lease, and keeps
it for the call.
"""

from collections.abc import Callable

from sqlalchemy import Connection

from flowserver.engine.context import EngineContext
from flowserver.engine.due_loop import AT_ONCE, DueLoop
from flowserver.store.invocations.leases import HeldInvocation, next_pause_end, take_over_due

TAKEN_AT_ONCE = 200


class RetryTimer(DueLoop):
    """The source of invocations whose pause is over; `take_over` is called with those that this node has leased."""

    name = "retries"

    def __init__(self, context: EngineContext, take_over: Callable[[list[HeldInvocation]], None]) -> None:
        super().__init__(context.clock, context.membership)
        self._reader = context.reader
        self._committer = context.committer
        self._lease = context.lease
        self._take_over = take_over

    async def handle_due(self) -> int | None:
        """Read first: on PostgreSQL even a transaction that finds nothing to lease waits for the disk."""
        first = await self._reader.ask(next_pause_end)
        if first is None or first > self._clock.now_ms():
            return first
        taken = await self._committer.write(self._lease_due)
        self._take_over(taken)
        return AT_ONCE if taken else self.left_at

    def _lease_due(self, connection: Connection) -> list[HeldInvocation]:
        if self._lease.is_leaving:
            return []
        return take_over_due(connection, self._lease.node_id, self._clock.now_ms(), TAKEN_AT_ONCE)
