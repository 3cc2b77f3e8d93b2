"""The time limits of the calls that share a connection, by a clock that the test sets."""

import asyncio
import gc

import pytest

from flowserver.base.limits import Limits
from flowserver.invokers.http_connection import DeadlinePassed, HttpConnection
from flowserver.invokers.reply_reader import ConnectionEnded
from tests.invokers.wire_server import head

LENGTH = head(200, "content-length: 8") + b'{"a": 1}'


class Clock:
    """An event loop's time and timers."""

    def __init__(self):
        self.now = 0.0
        self.timers = []

    def create_future(self):
        return asyncio.get_running_loop().create_future()

    def time(self):
        return self.now

    def call_at(self, when, callback):
        timer = Timer(self, when, callback)
        self.timers.append(timer)
        return timer

    def pass_until(self, now):
        self.now = now
        for timer in [timer for timer in self.timers if timer.when() <= now]:
            self.timers.remove(timer)
            timer.callback()


class Timer:
    def __init__(self, clock, when, callback):
        self.clock, self.at, self.callback = clock, when, callback

    def when(self):
        return self.at

    def cancel(self):
        if self in self.clock.timers:
            self.clock.timers.remove(self)


class Transport:
    def __init__(self, connection):
        self.connection = connection
        self.sent = []
        self.is_open = True

    def write(self, data):
        self.sent.append(data)

    def is_closing(self):
        return not self.is_open

    def abort(self):
        self.is_open = False
        asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def connection(clock):
    return HttpConnection(clock, Limits())


@pytest.fixture
def transport(connection):
    made = Transport(connection)
    connection.connection_made(made)
    return made


async def begun(connection, deadline):
    call = asyncio.create_task(connection.call(b"request", deadline, 1000))
    await asyncio.sleep(0)
    return call


async def ended(connection, deadline):
    call = await begun(connection, deadline)
    connection.data_received(LENGTH)
    return await call


async def test_a_call_ends_at_its_own_deadline_and_not_at_an_earlier_ones(clock, connection, transport):
    for before, deadline in ((10.0, 5.0), (11.0, 30.0), (50.0, 40.0)):
        await ended(connection, before)
        call = await begun(connection, deadline)
        clock.pass_until(deadline - 1)
        connection.data_received(LENGTH)
        assert (await call).status == 200
    await ended(connection, 52.0)
    call = await begun(connection, 60.0)
    clock.pass_until(55.0)
    await asyncio.sleep(0)
    assert not call.done()
    assert len(clock.timers) == 1
    clock.pass_until(60.0)
    with pytest.raises(DeadlinePassed):
        await call
    assert not transport.is_open


async def test_one_timer_serves_the_calls_of_a_connection(clock, connection, transport):
    for number in range(5):
        await ended(connection, 10.0 + number)
        assert [timer.when() for timer in clock.timers] == [10.0]
    clock.pass_until(14.0)
    assert connection.is_ready
    assert clock.timers == []
    await ended(connection, 20.0)
    connection.close()
    await asyncio.sleep(0)
    assert clock.timers == []


async def test_a_connection_that_has_been_closed_carries_no_call(clock, connection, transport):
    await ended(connection, 10.0)
    connection.close()
    with pytest.raises(ConnectionEnded):
        await connection.call(b"request", 10.0, 1000)
    assert transport.sent == [b"request"]
    assert not connection.answered


@pytest.mark.parametrize("unrequested", [LENGTH, b"\r\n", b"H"])
async def test_anything_unrequested_closes_the_connection(connection, transport, unrequested):
    await ended(connection, 10.0)
    assert connection.is_ready
    connection.data_received(unrequested)
    assert not transport.is_open
    assert not connection.is_ready


async def test_an_idle_connection_keeps_no_reply(connection, transport):
    reply = await ended(connection, 10.0)
    holders = [each for each in gc.get_referrers(reply) if type(each).__name__ not in {"frame", "coroutine"}]
    assert holders == []
