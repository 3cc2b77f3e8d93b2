"""Shares out the calls that wait here for a place: those of executions that fall to another node go to that node.

So a node that joins takes its part of what has piled up, and one node's clients can keep all nodes busy. A node keeps
what falls to itself, so a call moves once, unless nobody takes it within a sweep.
"""

from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection

from flowserver.engine.cluster.lease import Lease
from flowserver.engine.cluster.membership import Membership
from flowserver.engine.commit.committer import Committer
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.store.executions.due import FIRST_TASK, TaskPlace, tasks_of_node
from flowserver.store.executions.saving import release_tasks

SHARED_PER_ROUND = 200
"""So few that the others have taken them before anybody believes that they were left lying."""

RELEASED_AT_ONCE = 1_000


class Backlog:
    """What this node has ordered and cannot begin."""

    def __init__(self, dispatcher: Dispatcher, committer: Committer, lease: Lease, membership: Membership) -> None:
        self._dispatcher = dispatcher
        self._committer = committer
        self._lease = lease
        self._membership = membership

    async def share_out(self) -> int:
        """Release up to `SHARED_PER_ROUND` waiting calls to the nodes that they fall to; returns how many.

        If the database fails, the calls are lost here and the sweeper orders them again.
        """
        calls = self._dispatcher.give_up_waiting(self._membership.share.owns, SHARED_PER_ROUND)
        if calls:
            await self._committer.write(self._release(calls))
            self._membership.announce().sweep = True
        return len(calls)

    async def release_all(self) -> None:
        """Release the calls that have not begun, some in each commit: this node leaves, so no more are leased to it."""
        after: TaskPlace | None = FIRST_TASK
        while after is not None:
            after = await self._committer.write(partial(self._release_page, after=after))
            self._membership.announce().sweep = True

    def _release_page(self, connection: Connection, after: TaskPlace) -> TaskPlace | None:
        node_id = self._lease.node_id
        tasks, following = tasks_of_node(connection, node_id, RELEASED_AT_ONCE, after)
        keys = [(ref.execution_id, ref.scope_id, ref.wait_id) for ref in tasks]
        release_tasks(connection, [key for key in keys if not self._dispatcher.has_begun(key)], node_id)
        return following

    def _release(self, calls: list[tuple[str, int, int]]) -> Callable[[Connection], None]:
        return lambda connection: release_tasks(connection, calls, self._lease.node_id)
