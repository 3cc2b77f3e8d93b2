"""Deletes ended executions after their retention, and flows and definitions that nothing refers to any more.

A loop of rounds. Every deletion is a small change that shares a commit with other work, and takes as many rows as keep
it short. Each node deletes its share, and what other nodes have left when its share is empty. The next round finds what
a round or a crash has left.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext
from flowserver.engine.deletion_pace import DeletionPace
from flowserver.machine.retention_rules import KEPT_MS_MIN, Rules
from flowserver.store.executions.retention import (
    HIDDEN,
    Ended,
    delete_definitions,
    delete_ended,
    ended_before,
    forget_flows,
    hide_ended,
    kept_flows,
    trim_history,
    unused_definitions,
)
from flowserver.store.integrity.file_space import executions_bytes, free_pages, give_back

log = logging.getLogger(__name__)

ROUND_SECONDS = 60.0
SETTLED_MS = 3_600_000
"""No start under way uses a flow or a definition that it read longer ago."""

EXECUTIONS_AT_ONCE = 50
FOUND_AT_ONCE = 500
STEPS = 100
"""Above `bytes_max`, one step deletes this part of the time from the first end until now."""

PAGES_AT_ONCE = 128
SPARE_PART = 20
"""This part of a file's pages stays free for new executions."""

T = TypeVar("T")


class ExecutionRetention(PeriodicLoop):
    """One node's part. `on_deleted` is called with the number of deleted executions, `sleep` waits for seconds."""

    name = "retention"
    interval_seconds = ROUND_SECONDS

    def __init__(
        self,
        context: EngineContext,
        rules: Rules,
        on_deleted: Callable[[int], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(sleep)
        self._database = context.database
        self._committer = context.committer
        self._watch = context.clock_watch
        self._membership = context.membership
        self._rules = rules
        self._on_deleted = on_deleted
        self._pace = DeletionPace(context.committer, self._sleep)
        self._tidied_at = 0

    async def run_once(self) -> int:
        """Delete all that the rules allow now; returns how many executions this node has deleted."""
        now = self._watch.deletion_now()
        if now is None:
            return 0
        count = await self._delete_before(HIDDEN, INSTANT_MS_MAX)  # long ones whose deletion a crash interrupted
        for flow in await self._read(kept_flows):
            until = self._rules.keeps_until(flow.retention_days, now, is_deleted=flow.is_deleted)
            if flow.oldest_ms < until:
                count += await self._delete_before(flow.flow_id, until)
        early = await self._make_room(now)
        await self._tidy(now)
        if self._database.is_sqlite:
            await self._shorten_file()
        if count:
            log.info("deleted %d ended executions after their retention", count)
        if early:
            log.info("deleted %d ended executions early, because executions exceed their limit", early)
        return count + early

    async def _make_room(self, now: int) -> int:
        """While executions exceed `bytes_max`, delete what ended first, except of flows that keep everything."""
        count = 0
        while self._rules.bytes_max and (used := await self._read(executions_bytes)) > self._rules.bytes_max:
            kept = [flow for flow in await self._read(kept_flows) if flow.retention_days != 0]
            first = min((flow.oldest_ms for flow in kept), default=INSTANT_MS_MAX)
            until = min(first + (now - first) // STEPS + 1, now - KEPT_MS_MIN)
            gone = 0
            for flow in kept:
                gone += await self._delete_before(flow.flow_id, until) if flow.oldest_ms < until else 0
            if not gone:
                log.warning("executions exceed their limit with %d bytes, but no more may be deleted now", used)
                break
            count += gone
        return count

    async def _delete_before(self, flow_id: str, until_ms: int) -> int:
        """Delete the flow's executions that ended before the instant: this node's share, or any if that is empty."""
        find = partial(ended_before, flow_id=flow_id, before_ms=until_ms, limit=FOUND_AT_ONCE)
        count = 0
        while found := await self._read(find):
            mine = [each for each in found if self._membership.share.owns(each.execution_id)] or found
            gone = 0
            for some in self._in_portions(mine):
                gone += await self._delete(some, until_ms)
            if not gone:  # other nodes are deleting them
                break
            count += gone
        return count

    def _in_portions(self, found: list[Ended]) -> Iterator[list[Ended]]:
        """Divide them so that each portion fits into one transaction. A longer execution is a portion of its own."""
        portion: list[Ended] = []
        rows = 0
        for each in found:
            if portion and (rows + each.events > self._pace.rows or len(portion) == EXECUTIONS_AT_ONCE):
                yield portion
                portion, rows = [], 0
            portion.append(each)
            rows += each.events
        yield portion

    async def _delete(self, portion: list[Ended], until_ms: int) -> int:
        ids = [each.execution_id for each in portion]
        if len(portion) == 1 and portion[0].events > self._pace.rows:
            await self._delete_history(ids[0], until_ms)
        count = await self._pace.change(partial(delete_ended, execution_ids=ids, before_ms=until_ms))
        self._on_deleted(count)
        return count

    async def _delete_history(self, execution_id: str, until_ms: int) -> None:
        """Hide the execution and delete its history piece by piece."""
        if await self._committer.write(partial(hide_ended, execution_id=execution_id, before_ms=until_ms)):
            while await self._pace.change(partial(trim_history, execution_id=execution_id, limit=self._pace.rows)):
                pass

    async def _tidy(self, now: int) -> None:
        """Drop what nothing refers to: deleted flows, and once an hour definitions, whose search reads much."""
        before = now - SETTLED_MS
        while await self._pace.change(partial(forget_flows, before_ms=before, limit=FOUND_AT_ONCE)) == FOUND_AT_ONCE:
            pass
        if self._tidied_at > before:
            return
        self._tidied_at = now
        for unused in await self._read(partial(unused_definitions, before_ms=before)):
            await self._pace.change(partial(delete_definitions, unused=unused))

    async def _shorten_file(self) -> None:
        """Return free pages to the file system, except one part in `SPARE_PART`."""
        free, pages = await self._read(free_pages)
        if free * SPARE_PART <= pages:
            return
        while free * SPARE_PART > pages:
            before = pages
            await self._pace.change(partial(_give_back, pages=PAGES_AT_ONCE))
            free, pages = await self._read(free_pages)
            if pages >= before:  # a file that another program made may not be able to shrink
                return
        await self._aside(self._database.checkpoint)

    async def _read(self, query: Callable[[Connection], T]) -> T:
        return await self._aside(partial(self._database.run_read, query))


def _give_back(connection: Connection, pages: int) -> int:
    give_back(connection, pages)
    return pages
