"""Recovery of asynchronous invocations: orphaned or lost ones, pending stops, and undelivered callbacks."""

from collections.abc import Callable, Collection

from sqlalchemy import Connection

from flowserver.engine.context import EngineContext
from flowserver.engine.invocations.invocations import Invocations
from flowserver.engine.recovery import HELD_PER_SWEEP, Found, Resumed, SweepScope
from flowserver.store.invocations.leases import (
    HeldInvocation,
    invocations_of_node,
    orphaned_invocations,
    release_invocations,
    take_over_invocations,
)
from flowserver.store.invocations.rows import InvocationRow, find_readable
from flowserver.store.invocations.stop_marks import stopping_of_node, unwanted_invocations
from flowserver.store.invocations.untold_results import invocations_with_callback_due

TAKEN_AT_ONCE = 500
FOUND_PER_SWEEP = 200

FoundInvocations = Found[HeldInvocation, str, InvocationRow]


class InvocationRecovery:
    """Recovers asynchronous invocations. A `Recoverable`."""

    def __init__(self, context: EngineContext, invocations: Invocations) -> None:
        self._database = context.database
        self._committer = context.committer
        self._lease = context.lease
        self._invocations = invocations
        self._page = ""
        self._untold_to_skip = 0

    @property
    def under_way(self) -> list[str]:
        """Keys of the invocations that run here."""
        return self._invocations.under_way

    def find(self, under_way: Collection[str]) -> FoundInvocations:
        """Read a page of this node's invocations, and all other work that is due."""
        node_id = self._lease.node_id
        with self._database.read() as connection:
            untold = invocations_with_callback_due(connection, FOUND_PER_SWEEP, skip=self._untold_to_skip)
            held = invocations_of_node(connection, node_id, self._page, HELD_PER_SWEEP)
            orphans = orphaned_invocations(connection, TAKEN_AT_ONCE)
            stopping = stopping_of_node(connection, node_id, list(under_way)) if under_way else []
            unwanted = unwanted_invocations(connection, FOUND_PER_SWEEP)
        found = FoundInvocations(
            held=held,
            is_last_page=len(held) < HELD_PER_SWEEP,
            orphans=orphans,
            dropped=stopping,
            unwanted=unwanted,
            untold=find_readable(self._database, untold),
        )
        self._page = "" if found.is_last_page else held[-1].invocation_key
        # Callbacks that a parked execution cannot take stay due, and must not hide later ones.
        self._untold_to_skip = self._untold_to_skip + FOUND_PER_SWEEP if len(untold) == FOUND_PER_SWEEP else 0
        return found

    def is_local(self, call: HeldInvocation) -> bool:
        """Whether the invocation waits or runs on this node."""
        return self._invocations.holds(call.invocation_key)

    async def resume(self, found: FoundInvocations, lost: list[HeldInvocation], scope: SweepScope) -> Resumed:
        """Stop first, so that a stopped invocation is not called again. The first node to ask takes the orphans."""
        self._invocations.notice_stopping(found.dropped)
        if found.unwanted:
            await self._invocations.stop_all(found.unwanted)
        for row in found.untold:
            self._invocations.tell(row)
        self._invocations.take_over(lost)
        taken: list[HeldInvocation] = []
        if found.orphans and scope != "nothing released":  # other nodes take what was just released
            taken = await self._committer.write(self._take_over)
            self._invocations.take_over(taken)
        return Resumed(calls=len(taken), had_orphans=bool(taken), is_full=len(taken) == TAKEN_AT_ONCE)

    async def release(self, keeps: Callable[[str], bool], limit: int) -> int:
        """Release waiting invocations that other nodes should run."""
        keys = self._invocations.send_away(keeps, limit)
        if keys:
            await self._committer.write(lambda connection: release_invocations(connection, self._lease.node_id, keys))
        return len(keys)

    def _take_over(self, connection: Connection) -> list[HeldInvocation]:
        if self._lease.is_leaving:
            return []
        return take_over_invocations(connection, self._lease.node_id, TAKEN_AT_ONCE)
