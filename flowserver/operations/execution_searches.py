"""Searches: executions of all flows, and events of one execution."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument
from flowserver.engine.engine import Engine
from flowserver.machine.events import Event
from flowserver.operations.executions import event_id_of, is_small_number, require_id
from flowserver.operations.paging import Page, check_limit
from flowserver.store.executions.history_search import EventFilter, search_events
from flowserver.store.executions.listing import ExecutionFilter
from flowserver.store.executions.listing_all import AllCursor, AllListed, list_all_executions
from flowserver.store.executions.reading import ExecutionRow

EVENT_ID_MAX: Final = 2_147_483_646
"""Event ids are 32-bit numbers, and one more must still be one."""


class ExecutionSearches:
    """Searches for executions and events."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

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
        self, flow_name: str, name: str, wanted: EventFilter, *, next_token: str | None, limit: int | None
    ) -> Page[Event]:
        """Events that match, in either order. The token is the id of the event that the next page looks at first.

        A page may be short or empty before the last one.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        default = EVENT_ID_MAX if wanted.is_backwards else wanted.after_event_id + 1
        first = event_id_of(next_token) if next_token else default

        def read(connection: Connection) -> tuple[Sequence[Event], int | None]:
            execution_id = require_id(connection, flow_name, name)
            return search_events(
                connection,
                execution_id,
                wanted,
                from_event_id=min(first, EVENT_ID_MAX),
                limit=size,
                bytes_max=limits.page_bytes_max,
            )

        events, following = await self._engine.slow_reads.ask(read)
        return Page(events, None if following is None else str(following))


def _all_cursor_of(token: str) -> AllCursor:
    start, _, execution_id = token.partition("/")
    if not (is_small_number(start) and execution_id):
        raise InvalidArgument("NextToken must be that of a page before")
    return AllCursor(int(start), execution_id)
