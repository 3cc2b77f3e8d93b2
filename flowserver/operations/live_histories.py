"""Histories as they grow, each encoded once for all readers that follow it on this node, and read once or not at all.

A *page* is the events after a place, as one read has found them. Histories only grow, so a page stays true, and all
readers at its place get the same bytes. All readers of one execution share a `_Followed`. It hears of changes, gets
the page after the place where its readers wait, and only then wakes them. The events of that page are those that this
node has just committed; if they do not follow that place, another node has committed some, and it reads. A reader
elsewhere finds a page that is kept, or reads, together with those at its place.

What is known of the end of a history holds until the next change, which `_changes` counts: a read that began before it
says nothing about the end any more, but its page is good. What is known makes a reader wait, but no reader ends before
it has looked for itself, since a redrive may continue the history.

With `encode_steps` a page begins with the changes of the step summary since the page's place. They may be ahead of the
page's events, never behind: a reader that was cut off in a page, and goes on after any event that it has, has missed no
change before that event.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Final

from cachetools import LRUCache
from sqlalchemy import Connection

from flowserver.base.malloc_trim import give_back_memory
from flowserver.concurrency.background_throttle import yield_to_writer
from flowserver.concurrency.futures import shared
from flowserver.concurrency.single_flight import SingleFlight
from flowserver.concurrency.threads import run_aside
from flowserver.concurrency.waiting import Signal
from flowserver.engine.engine import Engine
from flowserver.machine.events import Event, EventType
from flowserver.operations.fold_cache import read_on
from flowserver.operations.held_requests import HeldRequests
from flowserver.operations.history_folds import HistoryFold
from flowserver.operations.history_search import HistorySearch, PlacedEvent
from flowserver.operations.step_changes import EncodeChanges, StepChanges
from flowserver.store.executions.history import find_news, list_events_page, time_of
from flowserver.store.executions.lookups import is_running

LOOK_AGAIN_SECONDS = 5.0
"""How often a history is read without news of it, should another node's notice not be heard; and how often the
permission of a waiting reader is checked."""

PAGE_EVENTS: Final = 200
PAGE_BYTES: Final = 262_144
"""Of details; a page has one event at least."""

NEWS_CHARACTERS: Final = 65_536
"""Of details; more are encoded beside the event loop."""

ENDS: Final = frozenset(
    (
        EventType.EXECUTION_SUCCEEDED,
        EventType.EXECUTION_FAILED,
        EventType.EXECUTION_STOPPED,
        EventType.EXECUTION_TIMED_OUT,
    )
)

PAUSE_SECONDS: Final = 0.02
"""After news, how long further news of the same execution wait, so that a busy execution is read fifty times a second
at most. News after a pause are read at once."""

PAUSE_SECONDS_EACH: Final = 0.0001
"""Added for each reader: to wake one and send it something takes a third of that."""

PAGE_OVERHEAD_BYTES: Final = 500

MANY_READERS: Final = 100
"""After so many readers of one execution, memory is given back to the system."""

GIVE_BACK_SECONDS: Final = 1.0

Encode = Callable[[Iterator[PlacedEvent]], Sequence[bytes]]
"""Encodes events: a few in the event loop, many beside it."""

Pause = Callable[[], object]

Check = Callable[[], Awaitable[object]]
"""Raises if the reader may read no further."""


@dataclass(frozen=True, slots=True)
class Page:
    """Encoded events in order."""

    last_event_id: int
    pieces: Sequence[bytes]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(map(len, self.pieces)) + PAGE_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is followed, and how it is shown."""

    execution_id: str
    with_paths: bool
    encode: Encode
    encode_steps: EncodeChanges | None

    @property
    def needs_fold(self) -> bool:
        """Whether it shows what follows from the events before."""
        return self.with_paths or self.encode_steps is not None


class LiveHistories:
    """Histories that are followed. Use it in the event loop."""

    def __init__(self, engine: Engine, search: HistorySearch, held: HeldRequests) -> None:
        self.held = held
        """Readers take a place before they follow."""
        self._engine = engine
        self._search = search
        self._kept = _KeptPages(engine.limits.streamed_events_bytes_max)
        self._followed: dict[_Kind, _Followed] = {}
        self._is_giving_back = False

    @property
    def kept_bytes(self) -> int:
        """What the pages take that are kept: those of executions that are followed."""
        return int(self._kept.currsize)

    async def has_events(self, execution_id: str, *, after_event_id: int) -> bool:
        """Whether the execution has events after that one."""
        time = await self._engine.reader.ask(
            lambda connection: time_of(connection, execution_id, after_event_id + 1), by_caller=True
        )
        return time is not None

    async def follow(
        self,
        execution_id: str,
        *,
        after_event_id: int = 0,
        with_paths: bool = False,
        encode: Encode,
        encode_steps: EncodeChanges | None = None,
        check: Check | None = None,
    ) -> AsyncGenerator[Page, None]:
        """Pages of events as they happen, from the one after `after_event_id` to the execution's last.

        Ends early when the server stops. `check` is called before each page, at least every LOOK_AGAIN_SECONDS; what it
        raises ends the pages. An execution that is deleted meanwhile has ended. Raises InvalidArgument if the paths
        or the step summary take too much.
        """
        kind = _Kind(execution_id, with_paths, encode, encode_steps)
        followed = self._followed.get(kind)
        if followed is None:
            followed = self._followed[kind] = _Followed(self._engine, self._search, kind, self._kept)
        followed.enter()
        try:
            while True:
                if check is not None:
                    await check()
                page = self._kept.get((followed, after_event_id))
                if page is None:
                    is_stopping = self._engine.watchers.is_stopping
                    if followed.has_nothing_after(after_event_id) and not followed.is_over and not is_stopping:
                        await followed.news.is_set_within(LOOK_AGAIN_SECONDS)
                        continue
                    look = await followed.read(after_event_id)
                    page = look.page
                    if page is None and (look.is_over or is_stopping):
                        return
                if page is not None:
                    after_event_id = page.last_event_id
                    yield page
        finally:
            followed.readers -= 1
            if not followed.readers:
                del self._followed[kind]
                followed.close()
                self._give_back(followed.readers_most)

    def _give_back(self, readers: int) -> None:
        """Give memory back to the system after many readers, once their connections are closed."""
        if readers >= MANY_READERS and not self._is_giving_back:
            self._is_giving_back = True
            asyncio.get_running_loop().call_later(GIVE_BACK_SECONDS, self._begin_to_give_back)

    def _begin_to_give_back(self) -> None:
        self._is_giving_back = False
        self._giving_back = shared(run_aside(give_back_memory))  # asyncio itself keeps no task alive


@dataclass(frozen=True, slots=True)
class _Look:
    """What a read has found after a place."""

    page: Page | None
    is_last: bool
    """Whether there was nothing after the page."""
    is_over: bool


@dataclass(frozen=True, slots=True)
class _News:
    """All events after a place; None if they are too many to be news."""

    events: Sequence[Event] | None
    is_over: bool


class _Followed:
    """An execution that some follow. It has a task while it is open."""

    def __init__(self, engine: Engine, search: HistorySearch, kind: _Kind, kept: "_KeptPages") -> None:
        self.readers = self.readers_most = 0
        self.news = Signal()
        """Set, and replaced, when there may be something new."""
        self.is_over = False
        """Whether the execution was over at the last look."""
        self.places: set[int] = set()
        """Where pages begin that are kept."""
        self._engine, self._search, self._kind, self._kept = engine, search, kind, kept
        self._changes = 0
        self._end: int | None = None
        """Nothing came after this event when the present number of changes was known; None if that is not known."""
        self._reads: SingleFlight[int, _Look] = SingleFlight()
        self._watching = ExitStack()
        self._watch = self._watching.enter_context(engine.watchers.watch_changes(kind.execution_id))
        if kind.needs_fold:
            self._watching.enter_context(search.following_paths(kind.execution_id))
        self._task = asyncio.create_task(self._follow(), name="followed history")

    def enter(self) -> None:
        """One more reader follows it."""
        self.readers += 1
        self.readers_most = max(self.readers, self.readers_most)

    def close(self) -> None:
        """No reader follows it any more."""
        self._task.cancel()
        self._watching.close()
        self._kept.forget(self)

    def has_nothing_after(self, place: int) -> bool:
        """Whether it is known that there is no event after this one."""
        return self._end is not None and place >= self._end

    async def read(self, place: int) -> _Look:
        """Look for the events after this one, together with others that ask for the same."""
        return await self._reads.run(place, partial(self._read, place))

    async def _follow(self) -> None:
        while True:
            await self._watch.woken.is_set_within(LOOK_AGAIN_SECONDS)
            self._watch.woken.clear()
            news, self._watch.news = self._watch.news, []
            self._changes += 1
            end, self._end = self._end, None
            if end is not None:
                with suppress(Exception):  # readers then read for themselves, and get the error
                    await self._reads.run(end, partial(self._read_news, end, news))
            self.news.set()
            self.news = Signal()
            await asyncio.sleep(PAUSE_SECONDS + PAUSE_SECONDS_EACH * self.readers)

    async def _read_news(self, place: int, committed: Sequence[Event]) -> _Look:
        """As `_read`. `committed` are all news if no other node has committed any; then nothing is read.

        Otherwise a look-up finds the news, in the common case of a few small events.
        """
        changes = self._changes
        committed = [event for event in committed if event.event_id > place]
        async with self._use_paths() as paths:
            if _are_next(committed, place):
                found = _News(committed, committed[-1].type in ENDS)
            else:
                found = await self._engine.reader.ask(partial(self._find_news, place=place))
            events = found.events
            if events is not None and (not events or self._can_place(events, paths)):
                page = self._page(place, events, paths) if events else None
                return self._learn(place, changes, _Look(page, True, found.is_over))
        return await self._read(place)

    async def _read(self, place: int) -> _Look:
        changes = self._changes
        async with self._use_paths() as paths:
            look = await self._engine.slow_reads.ask(partial(self._look, place=place, paths=paths))
        return self._learn(place, changes, look)

    def _use_paths(self) -> AbstractAsyncContextManager[HistoryFold | None]:
        if self._kind.needs_fold:
            return self._search.use_paths(self._kind.execution_id)
        return nullcontext()

    def _learn(self, place: int, changes: int, look: _Look) -> _Look:
        """Keep what was found by a look that began at this number of changes."""
        if look.page is not None and self.readers:
            self._kept.keep(self, place, look.page)
        if changes == self._changes:
            self.is_over = look.is_over
            if look.is_last:
                end = place if look.page is None else look.page.last_event_id
                self._end = end if self._end is None else min(end, self._end)
        return look

    def _find_news(self, connection: Connection, *, place: int) -> _News:
        is_over = not is_running(connection, self._kind.execution_id)
        return _News(find_news(connection, self._kind.execution_id, from_event_id=place + 1), is_over)

    def _can_place(self, news: Sequence[Event], paths: HistoryFold | None) -> bool:
        """Take the events into the paths, if these are wanted. False if earlier events are missing there.

        False, too, if that may take long, and belongs in a thread.
        """
        if paths is None:
            return True
        if paths.summaries.takes_long(len(news)):
            return False
        for event in news:
            if event.event_id == paths.last_event_id + 1:
                paths.add(event)
        return paths.last_event_id >= news[-1].event_id and paths.size <= self._engine.limits.step_paths_bytes_max

    def _page(self, place: int, events: Sequence[Event], fold: HistoryFold | None, pause: Pause = lambda: None) -> Page:
        placed: Iterable[str | None] = repeat(None)
        if fold is not None and self._kind.with_paths:
            placed = fold.paths_of(event.event_id for event in events)

        def encoded() -> Iterator[PlacedEvent]:
            for each in zip(events, placed, strict=False):
                yield PlacedEvent(*each)
                pause()

        pieces = self._kind.encode(encoded())
        if fold is not None and self._kind.encode_steps is not None:
            changes = self._kind.encode_steps(StepChanges.after(fold.summaries.newest, place))
            pieces = [changes + pieces[0], *pieces[1:]]
        return Page(events[-1].event_id, pieces)

    def _look(self, connection: Connection, *, place: int, paths: HistoryFold | None) -> _Look:
        """Look in a thread; it reads first whether the execution is over, so that nothing comes after its end."""
        execution_id, limits = self._kind.execution_id, self._engine.limits
        is_over = not is_running(connection, execution_id)
        events, following = list_events_page(
            connection, execution_id, from_event_id=place + 1, limit=PAGE_EVENTS, bytes_max=PAGE_BYTES
        )
        if not events:
            return _Look(None, True, is_over)
        if paths is not None and paths.last_event_id < events[-1].event_id:
            read_on(connection, execution_id, paths, limits)
        return _Look(self._page(place, events, paths, yield_to_writer), following is None, is_over)


def _are_next(events: Sequence[Event], place: int) -> bool:
    """Whether these events follow that place without a gap, are whole, and so few that they are encoded at once."""
    return (
        0 < len(events) <= PAGE_EVENTS
        and events[0].event_id == place + 1
        and events[-1].event_id == place + len(events)
        and not any(event.parts for event in events)
        and sum(len(event.detail) for event in events) <= NEWS_CHARACTERS
    )


class _KeptPages(LRUCache[tuple[_Followed, int], Page]):
    """The most recently used pages, by their places."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(bytes_max, getsizeof=attrgetter("size"))

    def keep(self, followed: _Followed, place: int, page: Page) -> None:
        """Keep a page, unless it is too large."""
        if page.size <= self.maxsize:
            self[followed, place] = page
            followed.places.add(place)

    def popitem(self) -> tuple[tuple[_Followed, int], Page]:
        """Remove the page that was not used for the longest time."""
        (followed, place), page = super().popitem()
        followed.places.discard(place)
        return (followed, place), page

    def forget(self, followed: _Followed) -> None:
        """Remove the pages of an execution that is followed no longer."""
        for place in followed.places:
            self.pop((followed, place), None)
        followed.places.clear()
