"""Large replies are read in turns and from places of which others keep some, and what was read of them is not kept."""

import asyncio
from collections.abc import Callable

import pytest

from flowserver.base.limits import Limits
from flowserver.concurrency.keyed_semaphore import KeyedSemaphore
from flowserver.invokers.calls import Endpoint, Invocation, Reply
from flowserver.invokers.http import HttpInvoker
from flowserver.invokers.http_connection import HttpConnection
from flowserver.invokers.large_replies import LARGE_BYTES, Place, places_of_process
from flowserver.invokers.reply_reader import ReplyTooLarge
from tests.invokers.wire_server import WireServer, head

PART = b"x" * (LARGE_BYTES + 1)
PARTS = 4
BYTES = PARTS * len(PART)
START = head(200, f"content-length: {BYTES}")


class Transport:
    """Counts how often it is paused and read on."""

    def __init__(self) -> None:
        self.is_reading = True
        self.is_open = True

    def write(self, data: bytes) -> None:
        pass

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading
        self.is_reading = True

    def abort(self) -> None:
        self.is_open = False


class Reading:
    """One large reply that is being read, part by part."""

    def __init__(self, places: KeyedSemaphore, function: str) -> None:
        self.transport = Transport()
        self.connection = HttpConnection(asyncio.get_running_loop(), Limits())
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]
        place = Place(places, ("flow", ("", function)))
        self.call = asyncio.create_task(self.connection.call(b"", 1e9, BYTES, place))

    def receive(self, data: bytes = PART) -> None:
        assert self.transport.is_reading
        self.connection.data_received(data)


async def begun(places: KeyedSemaphore, *functions: str) -> list[Reading]:
    """Replies of which the head has come."""
    readings = [Reading(places, function) for function in functions]
    await asyncio.sleep(0)
    for reading in readings:
        reading.receive(START)
        assert reading.transport.is_reading, "it is not large yet"
    return readings


async def reading_of(readings: list[Reading], rounds: int = 1) -> list[bool]:
    """Which of them are read after so many rounds of the event loop."""
    for _ in range(rounds):
        await asyncio.sleep(0)
    return [reading.transport.is_reading for reading in readings]


async def test_each_round_of_the_event_loop_reads_on_at_most_one_reply() -> None:
    readings = await begun(places_of_process(Limits()), *"abc")
    for each in readings:
        each.receive()
    assert await reading_of(readings) == [True, False, False]
    readings[0].receive()
    assert await reading_of(readings) == [False, True, False]
    assert await reading_of(readings) == [False, True, True]
    assert await reading_of(readings) == [True, True, True]
    for _ in range(PARTS - 1):
        for each in readings:
            if not each.call.done():
                each.receive()
        await reading_of(readings, rounds=3)
    replies = await asyncio.gather(*(each.call for each in readings))
    assert [len(reply.body) for reply in replies] == [BYTES] * 3


async def test_a_reply_without_a_place_waits_until_another_has_ended() -> None:
    readings = await begun(places_of_process(Limits(large_replies_max=1)), "a", "b", "c")
    for each in readings:
        each.receive()
    assert await reading_of(readings, rounds=9) == [True, False, False]
    readings[1].call.cancel()  # it waits no more
    for _ in range(PARTS - 1):
        readings[0].receive()
        await reading_of(readings, rounds=3)
    await readings[0].call
    assert await reading_of(readings, rounds=9) == [True, False, True]


async def test_a_reply_that_waits_for_its_place_cannot_wait_for_a_second_one() -> None:
    places = places_of_process(Limits(large_replies_max=1))
    place, other = Place(places, ("flow", ("", "a"))), Place(places, ("flow", ("", "b")))
    other.wait_for_turn(lambda: None)
    place.wait_for_turn(lambda: None)
    with pytest.raises(AssertionError):
        place.wait_for_turn(lambda: None)
    other.give_back()
    await asyncio.sleep(0)
    place.give_back()
    await asyncio.sleep(0)
    assert (places.taken, places.waiting) == (0, 0)


async def test_what_was_read_of_a_reply_that_is_too_large_is_not_kept() -> None:
    reading = Reading(places_of_process(Limits()), "a")
    await asyncio.sleep(0)
    reading.receive(head(200, "transfer-encoding: chunked"))
    for _ in range(PARTS + 1):
        reading.receive(b"%x\r\n%b\r\n" % (len(PART), PART))
        await reading_of([reading], rounds=2)
    with pytest.raises(ReplyTooLarge):
        await reading.call
    assert reading.connection._reader._pieces == []


async def test_a_function_whose_replies_never_end_leaves_places_to_others(
    invocation: Callable[..., Invocation], server: WireServer
) -> None:
    whole = asyncio.Event()

    async def answer(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(START + PART + PART)
        await writer.drain()
        if b"Function: slow" in request:
            await whole.wait()
        writer.write(PART + PART)
        await writer.drain()

    server.answer = answer
    invoker = HttpInvoker(Limits(large_replies_max=4), stale_seconds=60)

    def call(function: str) -> asyncio.Task[Reply]:
        made = invocation(function=function, flow_name=function, timeout_ms=60_000)
        endpoint = Endpoint(server.url, {"Function": function}, 60)
        return asyncio.create_task(invoker.exchange(made, endpoint))  # type: ignore[arg-type]

    slow = [call("slow") for _ in range(10)]
    for number in range(3):
        assert len((await call(f"quick {number}")).body) == BYTES
    assert not any(each.done() for each in slow)
    whole.set()
    assert {len(reply.body) for reply in await asyncio.gather(*slow)} == {BYTES}
    await invoker.close()
