"""All readers of an execution get all of its events in order, and share the reads."""

import asyncio
import pickle
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from io import BytesIO
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from flowserver.base.errors import AccessDenied, InvalidArgument
from flowserver.base.limits import Limits
from flowserver.machine.events import Event
from flowserver.machine.step_summary import StepSummary
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.operations import history_search, live_histories, rewinding, step_changes
from flowserver.operations.history_search import PlacedEvent
from flowserver.operations.live_histories import Check, Page
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.operations.step_changes import StepChanges
from flowserver.store.executions.history import find_news, list_events_page
from flowserver.store.executions.history_search import EventFilter, search_events
from tests.engine.called_functions import Functions
from tests.engine.nodes import PATIENCE_SECONDS, Node

PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}\n"
LONG = "".join(f"- {{type: pass, name: before{n}}}\n" for n in range(100)) + PAY
LONG += "".join(f"- {{type: pass, name: after{n}}}\n" for n in range(20))

Read = tuple[int, int]
"""After which event, and how many were found."""


@pytest.fixture(autouse=True)
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only news wake readers."""
    monkeypatch.setattr(live_histories, "LOOK_AGAIN_SECONDS", 10 * PATIENCE_SECONDS)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Read]:
    made: list[Read] = []

    def counted(connection: Connection, execution_id: str, *, from_event_id: int, **bounds: int) -> object:
        found, following = list_events_page(connection, execution_id, from_event_id=from_event_id, **bounds)
        made.append((from_event_id - 1, len(found)))
        return found, following

    def news(connection: Connection, execution_id: str, *, from_event_id: int) -> Sequence[Event] | None:
        found = find_news(connection, execution_id, from_event_id=from_event_id)
        made.append((from_event_id - 1, len(found or ())))
        return found

    monkeypatch.setattr(live_histories, "find_news", news)
    monkeypatch.setattr(live_histories, "list_events_page", counted)
    return made


class Encoder:
    """Encodes events as their JSON, and counts how often it encodes each."""

    def __init__(self) -> None:
        self.encoded: Counter[int] = Counter()

    def __call__(self, events: Iterator[PlacedEvent]) -> list[bytes]:
        return [self._encode(placed) for placed in events]

    def _encode(self, placed: PlacedEvent) -> bytes:
        self.encoded[placed.event.event_id] += 1
        return msgspec.json.encode(placed.event)


class Follower:
    """A reader of execution `e` of flow `f`; `pages` may be read by hand, or all by `rest`."""

    def __init__(self, node: Node, encode: Encoder, after: int = 0, check: Check | None = None) -> None:
        self.seen: list[Event] = []
        self._node, self._encode, self._after, self._check = node, encode, after, check
        self.pages: AsyncIterator[Page] = self._follow()

    async def _follow(self) -> AsyncIterator[Page]:
        row = await self._node.operations.executions.describe("f", "e")
        async for page in self._node.operations.live_histories.follow(
            row.execution_id, after_event_id=self._after, encode=self._encode, check=self._check
        ):
            self.seen += [msgspec.json.decode(piece, type=Event) for piece in page.pieces]
            assert self.seen[-1].event_id == page.last_event_id
            yield page

    async def until(self, event_id: int) -> None:
        """Read up to this event."""
        while not self.seen or self.seen[-1].event_id < event_id:
            await anext(self.pages)

    async def rest(self) -> list[Event]:
        """Read to the end; returns all."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for _ in self.pages:
                pass
        return self.seen


@pytest.fixture
async def long(node: Node, functions: Functions) -> int:
    """Execution `e` of `LONG` waits for its function; returns its last event."""
    await node.register(functions, "shop/pay")
    await node.create_flow("f", LONG)
    await node.start("f", "e")
    await functions.next_call("shop/pay")
    return len(await node.history("f", "e"))


async def test_each_event_is_read_and_encoded_once_for_all(
    node: Node, functions: Functions, long: int, reads: list[Read]
) -> None:
    encoder = Encoder()
    many = [asyncio.create_task(Follower(node, encoder).rest()) for _ in range(30)]
    one = Follower(node, encoder)
    await one.until(long)
    functions.calls[0].reply()
    await one.rest()
    histories = await asyncio.gather(*many)
    assert all(history == one.seen for history in histories)
    assert one.seen == await node.history("f", "e")
    assert encoder.encoded == dict.fromkeys(range(1, len(one.seen) + 1), 1)
    found = [read for read in reads if read[1]]
    assert sum(read[1] for read in found) == long, "what is committed meanwhile is not read"
    assert len(reads) <= len(found) + 3, "reads that found nothing"


async def test_a_reader_that_is_behind_or_late_gets_all(node: Node, functions: Functions, long: int) -> None:
    encoder = Encoder()
    quick, slow = Follower(node, encoder), Follower(node, encoder)
    await quick.until(long)
    await anext(slow.pages)
    late = Follower(node, encoder, after=17)
    functions.calls[0].reply()
    history = await quick.rest()
    assert await slow.rest() == history
    assert await late.rest() == history[17:]
    assert encoder.encoded.total() <= 2 * len(history), "the late one begins at another place"


@pytest.mark.parametrize("limits", [Limits(streamed_events_bytes_max=30_000), Limits(streamed_events_bytes_max=1)])
async def test_what_is_kept_is_bounded_and_goes_with_the_last_reader(
    node: Node, functions: Functions, long: int, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_histories, "PAGE_EVENTS", 20)
    kept, encoder = node.operations.live_histories, Encoder()
    slow, quick = Follower(node, encoder), Follower(node, encoder)
    await anext(slow.pages)
    functions.calls[0].reply()
    async for _ in quick.pages:
        assert kept.kept_bytes <= limits.streamed_events_bytes_max
    assert quick.seen == await node.history("f", "e")
    assert await slow.rest() == quick.seen, "its pages were dropped, so it reads for itself"
    assert encoder.encoded[len(quick.seen) // 2] == 2
    assert kept.kept_bytes == 0
    assert not node.engine.watchers._for_changes


async def test_a_page_is_bounded_in_bytes(node: Node, long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_histories, "PAGE_BYTES", 100)
    follower = Follower(node, Encoder())
    page = await anext(follower.pages)
    assert page.last_event_id < 10
    await follower.until(30)
    assert [event.event_id for event in follower.seen] == list(range(1, len(follower.seen) + 1))


async def test_readers_that_have_not_read_the_end_go_on_with_a_redrive(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")
    await node.create_flow("f", PAY)
    await node.start("f", "e")
    encoder = Encoder()
    slow, quick = Follower(node, encoder), Follower(node, encoder)
    await anext(slow.pages)
    (await functions.next_call("shop/pay")).fail("E1")
    failed = await quick.rest()
    assert failed[-1].type == "ExecutionFailed"
    await node.operations.redrives.redrive("f", "e", RedriveWish())
    again = Follower(node, encoder, after=failed[-1].event_id)
    await anext(again.pages)
    (await functions.next_call("shop/pay")).reply()
    history = await slow.rest()
    assert history == await node.history("f", "e")
    assert history[-1].type == "ExecutionSucceeded"
    assert await again.rest() == history[len(failed) :]


async def test_a_place_beyond_the_end_does_not_confuse_others(node: Node, functions: Functions, long: int) -> None:
    encoder = Encoder()
    beyond = Follower(node, encoder, after=10**6)
    waiting = asyncio.create_task(beyond.rest())
    follower = Follower(node, encoder)
    await follower.until(long)
    functions.calls[0].reply()
    assert await follower.rest() == await node.history("f", "e")
    assert await waiting == []


async def test_a_reader_without_permission_ends_alone(node: Node, functions: Functions, long: int) -> None:
    is_allowed = True

    async def check() -> None:
        if not is_allowed:
            raise AccessDenied("its key was disabled")

    refused, other = Follower(node, Encoder(), check=check), Follower(node, Encoder())
    for each in (refused, other):
        await each.until(long)
    is_allowed = False
    functions.calls[0].reply()
    with pytest.raises(AccessDenied):
        await refused.rest()
    assert await other.rest() == await node.history("f", "e")


async def test_readers_get_the_databases_error_and_may_come_again(node: Node, functions: Functions, long: int) -> None:
    encoder = Encoder()
    followers = [Follower(node, encoder) for _ in range(2)]
    for each in followers:
        await each.until(long)
    row = await node.operations.executions.describe("f", "e")
    node.database.unreadable = True
    node.engine.watchers.wake(row.execution_id, ended=False)  # as another node's notice does
    for each in followers:
        with pytest.raises(OperationalError):
            await each.rest()
    node.database.unreadable = False
    functions.calls[0].reply()
    again = Follower(node, encoder, after=long)
    assert followers[0].seen + await again.rest() == await node.history("f", "e")


async def test_readers_are_released_when_the_server_stops(node: Node, long: int) -> None:
    waiting, late = Follower(node, Encoder()), Follower(node, Encoder())
    await waiting.until(long)
    rest = asyncio.create_task(waiting.rest())
    await anext(late.pages)
    node.engine.watchers.stop()
    assert len(await rest) == len(await late.rest()) == long


async def test_events_have_their_paths_and_large_values(node: Node, functions: Functions) -> None:
    label = "{type: pass, name: label, outputMappings: [{target: text, source: $input.text}]}"
    pack = f"- {{type: foreach, name: pack, iterationMapping: {{collection: $.items, item: text}}, steps: [{label}]}}\n"
    await node.register(functions, "shop/pay")
    await node.create_flow("f", PAY + pack + PAY.replace("pay,", "end,"))
    row = await node.start("f", "e", {"items": ["x" * 2_000, "y"]})
    seen: list[list[object]] = []
    replying: asyncio.Task[None] | None = None

    def encode(events: Iterator[PlacedEvent]) -> list[bytes]:
        return [msgspec.json.encode([[placed.event.detail, placed.path] for placed in events])]

    async def reply_twice() -> None:
        for _ in range(2):
            (await functions.next_call("shop/pay")).reply()

    follow = node.operations.live_histories.follow
    followers = node.operations.history_search._paths._kept._followers
    async for page in follow(row.execution_id, with_paths=True, encode=encode):
        assert followers == {row.execution_id: 1}
        for piece in page.pieces:
            seen += msgspec.json.decode(piece)
        replying = replying or asyncio.create_task(reply_twice())
    search = node.operations.history_search.search
    all_events = await search("f", "e", EventFilter(), with_paths=True, next_token=None, limit=1_000)
    assert seen == [[placed.event.detail, placed.path] for placed in all_events.items]
    assert not followers
    assert {"", "pay", "pack", "pack[1].label", "end"} <= {path for _, path in seen}


class Summary:
    """A reader of execution `e` that has the step summary after an event, and what the stream says of it since."""

    encoded = 0

    def __init__(self, node: Node, steps: Sequence[StepSummary], after: int) -> None:
        self.steps = {step.path: step for step in steps}
        self.last_event_id = self.event_id = after
        self._node = node

    @classmethod
    def encode(cls, changes: StepChanges) -> bytes:
        cls.encoded += 1
        return pickle.dumps(changes)

    async def follow(self) -> "Summary":
        row = await self._node.operations.executions.describe("f", "e")
        async for page in self._node.operations.live_histories.follow(
            row.execution_id, after_event_id=self.event_id, encode=_ids, encode_steps=Summary.encode
        ):
            pieces = BytesIO(page.pieces[0])
            changes = pickle.load(pieces)
            assert changes.last_event_id >= page.last_event_id == int(pieces.read().split()[-1])
            self.event_id, self.last_event_id = page.last_event_id, changes.last_event_id
            self.steps |= {step.path: step for step in changes.steps}
        return self


def _ids(events: Iterator[PlacedEvent]) -> list[bytes]:
    return [b"".join(b" %d" % placed.event.event_id for placed in events)]


async def test_changes_of_the_step_summary_come_with_the_events(
    node: Node, functions: Functions, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader with the summary after any event, be it later than its last event, gets all changes."""
    summarize = partial(node.operations.step_summaries.summarize, "f", "e", next_token=None, limit=1_000)
    readers = [Summary(node, [], 0) for _ in range(3)]
    for at in (1, 7, long - 3, long):
        readers.append(Summary(node, (await summarize(at=at)).items, at))
    readers.append(Summary(node, (await summarize()).items, 5))
    reading = [asyncio.create_task(each.follow()) for each in readers]
    await asyncio.sleep(0)
    functions.calls[0].reply()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*reading)
    summary = await summarize()
    for each in readers:
        assert list(each.steps.values()) == summary.items
        assert each.last_event_id == summary.last_event_id
    assert Summary.encoded < 4 * len(readers)
    monkeypatch.setattr(step_changes, "CHANGES_MAX", len(summary.items) - 1)
    row = await node.operations.executions.describe("f", "e")
    pages = [page async for page in node.operations.live_histories.follow(
        row.execution_id, encode=_ids, encode_steps=Summary.encode
    )]  # fmt: skip
    assert [pickle.loads(page.pieces[0]).steps is None for page in pages] == [True, *[False] * (len(pages) - 1)]


async def test_the_past_of_the_steps_is_kept_beside_the_event_loop(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To pickle a large fold takes some 20 ms."""
    names: list[str] = []
    frozen = rewinding._frozen

    def noted(summaries: StepSummaries) -> bytes:
        names.append(threading.current_thread().name)
        return frozen(summaries)

    monkeypatch.setattr(rewinding, "EVENTS_BETWEEN", 1)
    monkeypatch.setattr(rewinding, "BYTES_PER_EVENT", 1_000_000)
    monkeypatch.setattr(rewinding, "_frozen", noted)
    await node.register(functions, "shop/pay")
    await node.create_flow("f", PAY)
    row = await node.start("f", "e", {})
    replying: asyncio.Task[None] | None = None

    async def reply() -> None:
        (await functions.next_call("shop/pay")).reply()

    async for _page in node.operations.live_histories.follow(row.execution_id, with_paths=True, encode=Encoder()):
        replying = replying or asyncio.create_task(reply())
    described = await node.operations.executions.describe("f", "e")
    assert described.status == "Succeeded"
    assert len(names) > 5
    assert threading.main_thread().name not in names


async def test_a_search_keeps_no_follower_waiting(node: Node, long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows the execution needs the paths for each news; a search for old events may take long."""
    row = await node.operations.executions.describe("f", "e")
    folds = node.operations.history_search._paths._kept
    is_held: list[bool] = []

    def noted(*arguments: Any, **named: Any) -> Any:
        lock = folds._in_use.get(row.execution_id)
        is_held.append(lock is not None and lock.locked())
        return search_events(*arguments, **named)

    monkeypatch.setattr(history_search, "search_events", noted)
    search = partial(node.operations.history_search.search, "f", "e", EventFilter(), next_token=None, limit=9)
    everything = await search(with_paths=True)
    assert [placed.event.event_id for placed in everything.items] == list(range(1, 10))
    path = everything.items[-1].path
    assert path
    by_path = await search(path=path, with_paths=True)
    assert {placed.path for placed in by_path.items} == {path}
    assert is_held == [False, False]


@pytest.mark.parametrize("limits", [Limits(step_paths_bytes_max=1_000)])
async def test_paths_that_take_too_much_are_refused(node: Node, long: int, limits: Limits) -> None:
    row = await node.operations.executions.describe("f", "e")
    with pytest.raises(InvalidArgument, match="step_paths_bytes_max"):
        await node.operations.history_search.check_paths(row.execution_id)
