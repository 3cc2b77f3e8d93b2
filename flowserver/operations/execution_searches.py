"""Searches: executions of all flows, and events of one execution."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple

from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument
from flowserver.engine.engine import Engine
from flowserver.machine.event_paths import EventPaths, is_path
from flowserver.machine.events import Event
from flowserver.operations.executions import event_id_of, is_small_number, require_id
from flowserver.operations.kept_folds import KeptFolds, read_on
from flowserver.operations.paging import Page, check_limit
from flowserver.store.executions.history_search import EventFilter, search_events
from flowserver.store.executions.listing import ExecutionFilter
from flowserver.store.executions.listing_all import AllCursor, AllListed, list_all_executions
from flowserver.store.executions.reading import ExecutionRow

EVENT_ID_MAX: Final = 2_147_483_646
"""Event ids are 32-bit numbers, and one more must still be one."""


class PlacedEvent(NamedTuple):
    """An event, and the path of its step if that was asked for: "" for events of the execution itself."""

    event: Event
    path: str | None = None


class ExecutionSearches:
    """Searches for executions and events."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._paths: KeptFolds[EventPaths] = KeptFolds(EventPaths, engine.limits)

    async def list_all(
        self, wanted: ExecutionFilter, *, next_token: str | None, limit: int | None
    ) -> Page[ExecutionRow]:
        """Executions of all flows, newest first, without their documents. A page may be short before the last one.

        The token is the start and the id of the execution before the page.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.executions_page_max)
        after = None if next_token is None else _all_cursor_of(next_token)

        def read(connection: Connection) -> AllListed:
            return list_all_executions(connection, wanted, after=after, limit=size, bytes_max=limits.page_bytes_max)

        page = await self._engine.slow_reads.ask(read)
        following = page.following
        return Page(page.rows, None if following is None else f"{following.started_at}/{following.execution_id}")

    async def search_history(
        self,
        flow_name: str,
        name: str,
        wanted: EventFilter,
        *,
        step: str | None = None,
        with_paths: bool = False,
        next_token: str | None,
        limit: int | None,
    ) -> Page[PlacedEvent]:
        """Events that match, in either order. The token is the id of the event that the next page looks at first.

        `step` is the name of a step, or a path as `machine/event_paths.py` has them. A page may be short or empty
        before the last one. For a path, and `with_paths`, the first request reads the whole history once.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        default = EVENT_ID_MAX if wanted.is_backwards else wanted.after_event_id + 1
        first = event_id_of(next_token) if next_token else default

        execution_id = await self._engine.reader.ask(
            lambda connection: require_id(connection, flow_name, name), by_caller=True
        )
        by_path = step is not None and is_path(step)
        chosen = wanted if by_path else replace(wanted, step_name=step)

        def read(connection: Connection, paths: EventPaths | None) -> tuple[Sequence[Event], int | None]:
            if paths is not None:
                read_on(connection, execution_id, paths, limits)
            return search_events(
                connection,
                execution_id,
                replace(chosen, among=paths.find(str(step))) if paths is not None and by_path else chosen,
                from_event_id=min(first, EVENT_ID_MAX),
                limit=size,
                bytes_max=limits.page_bytes_max,
            )

        placed = None
        async with AsyncExitStack() as stack:
            paths = await stack.enter_async_context(self._paths.use(execution_id)) if by_path or with_paths else None
            events, following = await self._engine.slow_reads.ask(partial(read, paths=paths))
            if paths is not None and with_paths:
                placed = paths.paths_of(event.event_id for event in events)
        shown = zip(events, repeat(None) if placed is None else placed, strict=False)
        return Page([PlacedEvent(*each) for each in shown], None if following is None else str(following))


def _all_cursor_of(token: str) -> AllCursor:
    start, _, execution_id = token.partition("/")
    if not (is_small_number(start) and execution_id):
        raise InvalidArgument("NextToken must be that of a page before")
    return AllCursor(int(start), execution_id)
