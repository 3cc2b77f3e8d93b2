"""Search in the history of an execution: events that match, in either order, with the paths of their steps."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple

from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument
from flowserver.base.step_paths import is_path
from flowserver.engine.engine import Engine
from flowserver.machine.event_paths import EventPaths
from flowserver.machine.events import Event
from flowserver.operations.executions import require_id
from flowserver.operations.fold_cache import read_on
from flowserver.operations.history_folds import HistoryFold, HistoryFolds
from flowserver.operations.page_tokens import event_id_of
from flowserver.operations.pages import Page, check_limit
from flowserver.store.executions.history_search import EventFilter, search_events

EVENT_ID_MAX: Final = 2_147_483_646
"""Event ids are 32-bit numbers, and one more must still be one."""


class PlacedEvent(NamedTuple):
    """An event, and the path of its step if that was asked for: "" for events of the execution itself."""

    event: Event
    path: str | None = None


class HistorySearch:
    """Searches for events."""

    def __init__(self, engine: Engine, folds: HistoryFolds) -> None:
        self._engine = engine
        self._paths = folds

    async def search(
        self,
        flow_name: str,
        name: str,
        wanted: EventFilter,
        *,
        step: str | None = None,
        path: str | None = None,
        with_paths: bool = False,
        next_token: str | None,
        limit: int | None,
    ) -> Page[PlacedEvent]:
        """Events that match, in either order. The token is the id of the event that the next page looks at first.

        `step` is the name of a step, or a path as `machine/event_paths.py` has them; `path` is always a path, without
        what is in it. A page may be short or empty before the last one. For a path, and `with_paths`, the first request
        reads the whole history once. Raises InvalidArgument if both are given.
        """
        if step is not None and path is not None:
            raise InvalidArgument("step and path are two ways to choose a step: give one of them")
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        newest = EVENT_ID_MAX if wanted.before_event_id is None else wanted.before_event_id - 1
        default = newest if wanted.is_backwards else wanted.after_event_id + 1
        first = event_id_of(next_token) if next_token else default

        execution_id = await self._engine.reader.ask(
            lambda connection: require_id(connection, flow_name, name), by_caller=True
        )
        by_path = path is not None or (step is not None and is_path(step))
        chosen = replace(wanted, step_name=step)

        def find(connection: Connection, paths: EventPaths) -> list[int]:
            read_on(connection, execution_id, paths, limits)
            return paths.find(str(step)) if path is None else paths.find(path, is_exact=True)

        if by_path:
            async with self._paths.use(execution_id) as paths:
                chosen = replace(wanted, among=await self._engine.slow_reads.ask(partial(find, paths=paths)))
        # Not inside that block: readers who follow the execution wait for the paths, too.
        events, following = await self._engine.slow_reads.ask(
            lambda connection: search_events(
                connection,
                execution_id,
                chosen,
                from_event_id=min(first, EVENT_ID_MAX),
                limit=size,
                bytes_max=limits.page_bytes_max,
            )
        )
        placed = await self._place(execution_id, events) if with_paths else repeat(None)
        shown = zip(events, placed, strict=False)
        return Page([PlacedEvent(*each) for each in shown], None if following is None else str(following))

    async def _place(self, execution_id: str, events: Sequence[Event]) -> list[str]:
        """The paths of these events."""
        async with self._paths.use(execution_id) as paths:
            if paths.last_event_id < max((event.event_id for event in events), default=0):
                await self._engine.slow_reads.ask(
                    lambda connection: read_on(connection, execution_id, paths, self._engine.limits)
                )
            return paths.paths_of(event.event_id for event in events)

    async def check_paths(self, execution_id: str) -> None:
        """Raises InvalidArgument if the paths of the execution's steps take too much; the first time all are read."""
        async with self._paths.use(execution_id) as paths:
            if not paths.last_event_id:
                await self._engine.slow_reads.ask(
                    lambda connection: read_on(connection, execution_id, paths, self._engine.limits)
                )

    def use_paths(self, execution_id: str) -> AbstractAsyncContextManager[HistoryFold]:
        """The paths of an execution's events as far as they have been read, for the length of a block, which may read
        on.
        """
        return self._paths.use(execution_id)

    def following_paths(self, execution_id: str) -> AbstractContextManager[None]:
        """For the length of a block, keep the paths of an execution's events before those that are not followed."""
        return self._paths.following(execution_id)
