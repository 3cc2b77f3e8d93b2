"""Finds stuck executions: those whose work is due and not done. There are none while all servers work.

It reads only rows, and shares no state with recovery and the timers whose failure it reports.
"""

from collections.abc import Hashable, Iterator

from sqlalchemy import Connection

from flowserver.base.task_tokens import TaskTokens
from flowserver.store.executions.due import due_deadlines, due_timers, orphaned_tasks
from flowserver.store.integrity.stuck_executions import (
    parked_among,
    pausing_scopes,
    ready_versions,
    unreported_ends,
    violating_executions,
)

OVERDUE_MS = 10_000
"""A working server does all work sooner after it is due, even after another server has crashed."""

FOUND_MAX = 10_000
"""Most executions counted for each reason."""


class Overdue:
    """Counts overdue work. Use it from one thread at a time.

    Ready scopes and calls without a node have no instant. They are overdue when two counts that are `OVERDUE_MS` apart
    have found them unchanged.
    """

    def __init__(self, tokens: TaskTokens) -> None:
        self._tokens = tokens
        self._first_seen: dict[Hashable, int] = {}

    def stuck_executions(self, connection: Connection, now_ms: int) -> set[str]:
        """Executions that break the invariant, and those whose due work is overdue."""
        before = now_ms - OVERDUE_MS
        stuck = set(violating_executions(connection, FOUND_MAX))
        stuck.update(timer.execution_id for timer in due_timers(connection, before, FOUND_MAX))
        stuck.update(deadline.execution_id for deadline in due_deadlines(connection, before, FOUND_MAX))
        stuck.update(self._overdue_callbacks(connection, before))
        stuck.update(self._stalled(connection, now_ms))
        return stuck

    def _overdue_callbacks(self, connection: Connection, before_ms: int) -> Iterator[str]:
        """Executions whose callback waits, although the task it is for could take it."""
        claims = [
            (execution_id, self._tokens.read(token))
            for execution_id, token in unreported_ends(connection, before_ms, FOUND_MAX)
        ]
        receivers = {claim.execution_id for _, claim in claims if claim is not None}
        parked, pausing = parked_among(connection, receivers), pausing_scopes(connection, receivers)
        for execution_id, claim in claims:
            if claim is None or not (claim.execution_id in parked or (claim.execution_id, claim.scope_id) in pausing):
                yield execution_id

    def _stalled(self, connection: Connection, now_ms: int) -> Iterator[str]:
        found: dict[Hashable, str] = {call: call.execution_id for call in orphaned_tasks(connection, FOUND_MAX)}
        found.update(((each, version), each) for each, version in ready_versions(connection, FOUND_MAX))
        self._first_seen = {key: min(self._first_seen.get(key, now_ms), now_ms) for key in found}
        for key, execution_id in found.items():
            if self._first_seen[key] <= now_ms - OVERDUE_MS:
                yield execution_id
