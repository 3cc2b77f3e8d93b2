"""Calls over a link: both ways, many at a time, of any size; cancelled, refused, and cut off."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from flowserver.base.errors import (
    FlowServerError,
    InternalServerError,
    InvalidArgument,
    ResourceThrottled,
    ServiceUnavailable,
)
from flowserver.front.link import UNSENT_BYTES_MAX, Handler, Link, LinkLost
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.store.integrity.disk_reserve import DiskReserve

PATIENCE_SECONDS = 60


def explain(error: Exception, name: str) -> FlowServerError:
    return InternalServerError(f"{name}: {error}")


@pytest.fixture
async def ends() -> AsyncIterator[tuple[Link, Link, dict[str, Handler]]]:
    """Two ends, and the functions that the first end may call at the second."""
    ours, theirs = socket.socketpair()
    handlers: dict[str, Handler] = {}
    near, far = await Link.connected(ours, {}, explain), await Link.connected(theirs, handlers, explain)
    yield near, far, handlers
    near.close()
    far.close()
    await asyncio.gather(near.lost, far.lost)


@pytest.fixture
def near(ends: tuple[Link, Link, dict[str, Handler]]) -> Link:
    return ends[0]


@pytest.fixture
def handlers(ends: tuple[Link, Link, dict[str, Handler]]) -> dict[str, Handler]:
    return ends[2]


class EndlessWork:
    """A handler that runs until it is cancelled."""

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def echo(*arguments: Any) -> Any:
    return arguments


ANYTHING = [
    None,
    True,
    2**63,
    -1.5,
    "",
    "中\0\n",
    b"\x00\xff",
    ["nested", [b""]],
    {"a": {"b": None}},
    "long" * 1_000_000,
    b"l" * 3_000_000,
]


async def test_values_arrive_unchanged(near: Link, handlers: dict[str, Handler]) -> None:
    handlers["echo"] = echo
    assert await near.call("echo", *ANYTHING) == ANYTHING
    assert await near.call("echo") == []
    assert await asyncio.gather(*(near.call("echo", each) for each in ANYTHING)) == [[each] for each in ANYTHING]


async def test_answers_arrive_in_their_own_order(near: Link, handlers: dict[str, Handler]) -> None:
    waiting: dict[int, asyncio.Future[str]] = {}
    come = asyncio.Semaphore(0)

    async def wait(number: int) -> str:
        waiting[number] = asyncio.get_running_loop().create_future()
        come.release()
        return await waiting[number]

    handlers["wait"] = wait
    calls = [asyncio.create_task(near.call("wait", number)) for number in range(3)]
    for _ in calls:
        await come.acquire()
    for number in (1, 2, 0):
        waiting[number].set_result(f"answer {number}")
        assert await calls[number] == f"answer {number}"


async def test_frames_in_pieces(handlers: dict[str, Handler]) -> None:
    """For every division of the written bytes."""
    handlers["echo"] = echo
    ours, theirs = socket.socketpair()
    link = await Link.connected(theirs, handlers, explain)
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    far = Link({}, explain)
    pieces: list[bytes] = []
    far.connection_made(Written(pieces.append))
    for text in ("first", "second"):
        asyncio.ensure_future(far.call("echo", text)).add_done_callback(lambda call: call.exception())
    await asyncio.sleep(0)  # both calls have begun
    await asyncio.sleep(0)  # their frames have been sent
    for byte in b"".join(pieces):
        await loop.sock_sendall(ours, bytes([byte]))
    answers = b""
    while not (b"first" in answers and b"second" in answers):
        answers += await asyncio.wait_for(loop.sock_recv(ours, 1_000), PATIENCE_SECONDS)
    far.connection_lost(None)
    ours.close()
    await link.lost


class Written(asyncio.WriteTransport):
    """Passes on what is written."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self.write = write  # type: ignore[assignment, method-assign]

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It keeps no state."""


@pytest.mark.parametrize(
    ("raised", "arrives"),
    [
        (InvalidArgument("this is wrong"), InvalidArgument("this is wrong")),
        (ResourceThrottled(), ResourceThrottled()),
        (DefinitionRejected(()), InvalidArgument(DefinitionRejected(()).message)),
        (InvalidArgument("a lone \ud800"), InvalidArgument("a lone ?")),
        (ZeroDivisionError("a bug"), InternalServerError("fail for the other process: a bug")),
    ],
)
async def test_errors_keep_their_type(
    near: Link, handlers: dict[str, Handler], raised: Exception, arrives: FlowServerError
) -> None:
    async def fail() -> None:
        raise raised

    handlers["fail"] = fail
    with pytest.raises(FlowServerError) as caught:
        await near.call("fail")
    assert (type(caught.value), caught.value.message) == (type(arrives), arrives.message)


async def test_a_full_disk_keeps_its_code(near: Link, handlers: dict[str, Handler], tmp_path: Path) -> None:
    """Clients of RPC tell by it that it is no use to try again at once."""

    async def start() -> None:
        DiskReserve(tmp_path / "flowserver.db", 2**60).require()

    handlers["start"] = start
    with pytest.raises(ServiceUnavailable) as caught:
        await near.call("start")
    assert caught.value.code == "DiskAlmostFull"


async def test_values_that_cannot_be_sent(near: Link, handlers: dict[str, Handler]) -> None:
    """The call fails on either side; the link continues."""
    handlers["echo"] = echo

    async def answer_oddly() -> Any:
        return object()

    handlers["odd"] = answer_oddly
    with pytest.raises(UnicodeEncodeError):
        await near.call("echo", "\ud800")
    with pytest.raises(InternalServerError, match="odd"):
        await near.call("odd")
    with pytest.raises(InternalServerError, match="nobody knows"):
        await near.call("nobody knows")
    assert await near.call("echo", "well") == ["well"]


async def test_a_cancelled_caller_cancels_the_work(near: Link, handlers: dict[str, Handler]) -> None:
    work = handlers["work"] = EndlessWork()
    call = asyncio.create_task(near.call("work"))
    await work.begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(work.ended.wait(), PATIENCE_SECONDS)
    handlers["echo"] = echo
    assert await near.call("echo", 1) == [1]


async def test_work_cancelled_before_it_begins_leaves_no_state(
    ends: tuple[Link, Link, dict[str, Handler]],
) -> None:
    """Order and cancellation arrive in one packet."""
    near, far, handlers = ends
    handlers["echo"] = echo
    calls = [asyncio.create_task(near.call("echo", number)) for number in range(10)]
    await asyncio.sleep(0)  # all have been written, none has been sent
    for call in calls[:9]:
        call.cancel()
    assert await calls[9] == [9]
    assert far._serving == {}
    assert near._asked == {}


async def test_work_that_the_other_end_cancels(near: Link, handlers: dict[str, Handler]) -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    handlers["give up"] = give_up
    with pytest.raises(ServiceUnavailable):
        await near.call("give up")


async def test_a_lost_link(ends: tuple[Link, Link, dict[str, Handler]]) -> None:
    """Its callers get an error, and its work is cancelled."""
    near, far, handlers = ends
    work = handlers["work"] = EndlessWork()
    call = asyncio.create_task(near.call("work"))
    await work.begun.wait()
    near.close()
    with pytest.raises(LinkLost):
        await call
    await asyncio.wait_for(work.ended.wait(), PATIENCE_SECONDS)
    await far.lost
    for end in (near, far):
        with pytest.raises(LinkLost):
            await end.call("anything")


async def test_frames_sent_before_the_end_arrive(ends: tuple[Link, Link, dict[str, Handler]]) -> None:
    near, far, handlers = ends
    heard: list[int] = []

    async def hear(number: int) -> None:
        heard.append(number)

    handlers["hear"] = hear
    calls = [asyncio.create_task(near.call("hear", number)) for number in range(3)]
    await asyncio.sleep(0)  # they have begun
    near.close()
    await far.lost
    await asyncio.gather(*calls, return_exceptions=True)
    assert heard == [0, 1, 2]


MUCH = b"x" * 1_000_000
CALLS = 60


def unsent(link: Link) -> int:
    assert link._transport is not None
    return link._transport.get_write_buffer_size()


def stop_reading(link: Link) -> Callable[[], None]:
    """Stop this end from reading; returns what lets it continue."""
    transport: Any = link._transport
    transport.pause_reading()
    resume: Callable[[], None] = transport.resume_reading
    return resume


async def a_while() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


async def test_calls_wait_for_an_end_that_does_not_read(ends: tuple[Link, Link, dict[str, Handler]]) -> None:
    near, far, handlers = ends
    handlers["echo"] = echo
    resume = stop_reading(far)
    calls = [asyncio.create_task(near.call("echo", index, MUCH)) for index in range(CALLS)]
    await a_while()
    assert unsent(near) <= UNSENT_BYTES_MAX + len(MUCH) + 1_000
    resume()
    assert await asyncio.gather(*calls) == [[index, MUCH] for index in range(CALLS)]


async def test_answers_wait_for_an_end_that_does_not_read(ends: tuple[Link, Link, dict[str, Handler]]) -> None:
    near, far, handlers = ends

    async def give_much() -> bytes:
        return MUCH

    handlers["much"] = give_much
    resume = stop_reading(near)
    calls = [asyncio.create_task(near.call("much")) for _ in range(CALLS)]
    await a_while()
    assert 0 < unsent(far) <= UNSENT_BYTES_MAX + len(MUCH) + 1_000
    resume()
    assert await asyncio.gather(*calls) == [MUCH] * CALLS


async def test_both_ends_may_send_much_at_once(ends: tuple[Link, Link, dict[str, Handler]]) -> None:
    near, far, handlers = ends
    handlers["echo"] = near._handlers["echo"] = echo  # type: ignore[index]
    calls = [end.call("echo", MUCH) for _ in range(CALLS) for end in (near, far)]
    assert await asyncio.gather(*calls) == [[MUCH]] * (2 * CALLS)


async def test_a_caller_waiting_for_buffer_space_learns_that_the_link_is_lost(
    ends: tuple[Link, Link, dict[str, Handler]],
) -> None:
    near, far, handlers = ends
    handlers["echo"] = echo
    stop_reading(far)
    calls = [asyncio.create_task(near.call("echo", MUCH)) for _ in range(CALLS)]
    await a_while()
    assert far._transport is not None
    far._transport.abort()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in results] == [LinkLost] * CALLS
