"""The sweeper's part in asynchronous invocations: finds by the rows alone those that should go on and do not.

They are in the hands of a node that is gone, or of this one, which has forgotten them; somebody wants them stopped; or
they have ended, and whoever waits for that has not been told.
"""

import logging
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from flowserver.base.threads import Threads
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.cluster.membership import Membership
from flowserver.engine.commit.committer import Committer
from flowserver.engine.invocations.service import Invocations
from flowserver.store.invocations.changes import InvocationRow, find_invocations
from flowserver.store.invocations.leases import (
    HeldInvocation,
    has_orphaned_invocations,
    invocations_of_node,
    release_invocations,
    stopping_of_node,
    take_over_invocations,
    untold_invocations,
    unwanted_invocations,
)
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.unreadable import is_damage

log = logging.getLogger(__name__)

TAKEN_AT_ONCE = 500
LOOKED_AT_ONCE = 5_000
"""Of those in this node's hands; which ones goes round."""

FOUND_AT_ONCE = 200
SHARED_AT_ONCE = 200
"""So few that the others have taken them before anybody believes that they were left lying."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one look at the database found."""

    orphans: bool
    own: list[HeldInvocation]
    stopping: list[str]
    unwanted: list[str]
    untold: list[str]


class InvocationSweep:
    """Looks after the invocations of all nodes, whenever the sweeper sweeps."""

    def __init__(
        self,
        database: Database,
        committer: Committer,
        invocations: Invocations,
        lease: Lease,
        membership: Membership,
    ) -> None:
        self._database = database
        self._committer = committer
        self._invocations = invocations
        self._lease = lease
        self._membership = membership
        self._suspects: set[str] = set()
        """Missed when all were looked at last."""
        self._missed: set[str] = set()
        """The like, this time."""
        self._thread = Threads("invocation sweep")
        self._looked_to = ""
        self._told_to = 0

    def close(self) -> None:
        """End its thread; no sweep may follow."""
        self._thread.close()

    async def sweep(self) -> tuple[int, bool]:
        """Look once and set going whatever was found; returns how many were taken over, and whether to look again."""
        released = await self._share_out()
        found = await self._thread.run(partial(self._look, self._invocations.under_way))
        self._invocations.notice_stopping(found.stopping)
        if found.unwanted:
            await self._invocations.stop_all(found.unwanted)
        for row in await self._thread.run(partial(self._read, found.untold)):
            self._invocations.tell(row)
        self._take_up_lost(found.own)
        taken: list[HeldInvocation] = []
        if found.orphans and not released:  # what was just released is meant for another
            taken = await self._committer.write(self._take_over)
            self._invocations.take_over(taken)
        return len(taken), len(taken) == TAKEN_AT_ONCE or released == SHARED_AT_ONCE

    async def _share_out(self) -> int:
        """Let go of some that wait here for a place and fall to other nodes; returns how many."""
        if self._membership.is_alone:
            return 0
        keys = self._invocations.send_away(self._membership.share.owns, SHARED_AT_ONCE)
        if keys:
            await self._committer.write(lambda connection: release_invocations(connection, self._lease.node_id, keys))
            self._membership.announce().sweep = True
        return len(keys)

    def _look(self, under_way: list[str]) -> Found:
        node_id = self._lease.node_id
        with self._database.read() as connection:
            own = invocations_of_node(connection, node_id, self._looked_to, LOOKED_AT_ONCE)
            untold = untold_invocations(connection, FOUND_AT_ONCE, skip=self._told_to)
            found = Found(
                orphans=has_orphaned_invocations(connection),
                own=own,
                stopping=stopping_of_node(connection, node_id, under_way) if under_way else [],
                unwanted=unwanted_invocations(connection, FOUND_AT_ONCE),
                untold=untold,
            )
        self._looked_to = own[-1].invocation_key if len(own) == LOOKED_AT_ONCE else ""
        # Those that a parked execution cannot take stay due, and must not hide those that come after them.
        self._told_to = self._told_to + FOUND_AT_ONCE if len(untold) == FOUND_AT_ONCE else 0
        return found

    def _read(self, keys: list[str]) -> list[InvocationRow]:
        """Those of them that can be read: one that the database fails on must not hide the others."""
        if not keys:
            return []
        try:
            with self._database.read() as connection:
                return list(find_invocations(connection, keys).values())
        except DBAPIError as error:
            if not is_damage(error):
                raise
            if len(keys) == 1:
                log.warning("the end of invocation %s cannot be read: %s", keys[0], reason_of(error))
                return []
        return [row for key in keys for row in self._read([key])]

    def _take_up_lost(self, own: list[HeldInvocation]) -> None:
        """One may be between its commit and its line: it is lost only if two looks at its part of them miss it."""
        missed = {each.invocation_key for each in own if not self._invocations.is_in_hand(each.invocation_key)}
        self._invocations.take_over(each for each in own if each.invocation_key in missed & self._suspects)
        self._missed |= missed
        if not self._looked_to:  # all have been looked at
            self._suspects, self._missed = self._missed, set()

    def _take_over(self, connection: Connection) -> list[HeldInvocation]:
        if self._lease.is_leaving:
            return []
        return take_over_invocations(connection, self._lease.node_id, TAKEN_AT_ONCE)
