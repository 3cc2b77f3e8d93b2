"""`wait` and `events` while the server is away: both clients go on for a promised time, with growing pauses."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from flowserver.client import AsyncClient, Client, ClientError, Execution, NotFound, Unreachable, WaitedTooLong
from flowserver.client.outages import OUTAGE_SECONDS

RUNNING = {"flowName": "f", "name": "e", "status": "Running", "startedTime": "2026-01-02T03:04:05Z"}
BEGINNING = 'data: {"eventId": 1, "type": "ExecutionStarted", "time": "t"}\n\n: ping\n\n'
END = 'data: {"eventId": 2, "type": "ExecutionSucceeded", "time": "t"}\n\n'


class World:
    """A server that is away from 1 s until `back_at`, and the clock, which requests and pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.back_at = 5.0
        self.away: Callable[[], httpx.Response] = self.refuse
        self.pauses: list[float] = []
        self.tries = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def refuse(self) -> httpx.Response:
        raise httpx.ConnectError("refused")

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.now += 0.001
        self.tries += 1
        if 1 <= self.now < self.back_at:
            return self.away()
        is_before = self.now < 1
        if request.url.path.endswith("/stream"):
            self.now = max(1.0, self.now)
            return httpx.Response(200, text=BEGINNING if is_before else END)
        if is_before:
            self.now = 1.0
            raise httpx.ReadError("reset")
        return httpx.Response(200, json={**RUNNING, "status": "Succeeded"})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    async def sleep(seconds: float) -> None:
        world.sleep(seconds)

    def transport(*_: Any, **__: Any) -> httpx.MockTransport:
        return httpx.MockTransport(world.answer)

    for module in ("waiting", "outages", "blocking"):
        monkeypatch.setattr(f"flowserver.client.{module}.time", world)
    monkeypatch.setattr("asyncio.sleep", sleep)
    monkeypatch.setattr(httpx.Client, "_init_transport", transport)
    monkeypatch.setattr(httpx.AsyncClient, "_init_transport", transport)
    return world


async def waits(is_async: bool, **options: float) -> Execution:
    if not is_async:
        with Client("http://127.0.0.1:1") as client:
            return client.wait("f", "e", **options)
    async with AsyncClient("http://127.0.0.1:1") as client:
        return await client.wait("f", "e", **options)


async def reads(is_async: bool, **options: float) -> list[int]:
    if not is_async:
        with Client("http://127.0.0.1:1") as client:
            return [event.event_id for event in client.events("f", "e", **options)]
    async with AsyncClient("http://127.0.0.1:1") as client:
        return [event.event_id async for event in client.events("f", "e", **options)]


Call = Callable[..., Awaitable[Any]]
both = pytest.mark.parametrize("is_async", [False, True])
each_call = pytest.mark.parametrize("call", [waits, reads])


@both
@each_call
async def test_goes_on_when_the_server_is_back(world: World, call: Call, is_async: bool) -> None:
    found = await call(is_async)
    assert found == [1, 2] if call is reads else found.succeeded
    assert 5 <= world.now <= 10


@both
@each_call
async def test_gives_up_after_the_promised_time(world: World, call: Call, is_async: bool) -> None:
    world.back_at = 10_000.0
    with pytest.raises(Unreachable):
        await call(is_async)
    assert OUTAGE_SECONDS <= world.now - 1 <= OUTAGE_SECONDS + 0.1
    assert world.pauses[:3] == sorted(world.pauses[:3])
    assert max(world.pauses) <= 5
    assert world.tries < 150


@both
async def test_wait_tries_until_its_time_out(world: World, is_async: bool) -> None:
    for seconds in (120.0, 3600.0):
        world.now, world.back_at = 0.0, seconds - 30
        assert (await waits(is_async, timeout_seconds=seconds)).succeeded
        world.now, world.back_at = 0.0, 10_000.0
        with pytest.raises(Unreachable):
            await waits(is_async, timeout_seconds=seconds)
        assert seconds <= world.now <= seconds + 0.1


@both
@each_call
async def test_another_time_without_the_server(world: World, call: Call, is_async: bool) -> None:
    world.back_at = 10_000.0
    with pytest.raises(Unreachable):
        await call(is_async, outage_seconds=20)
    assert 20 <= world.now - 1 <= 20.1


@both
async def test_a_request_that_breaks_at_the_end_is_repeated(world: World, is_async: bool) -> None:
    """As all requests are, though the time-out is over."""
    world.back_at = 1.5
    assert (await waits(is_async, timeout_seconds=0)).succeeded
    world.now, world.back_at, world.tries = 0.0, 10_000.0, 0
    with pytest.raises(Unreachable):
        await waits(is_async, timeout_seconds=0)
    assert world.tries == 4


@each_call
@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_busy_server_is_asked_again_at_its_time(world: World, call: Call, status: int) -> None:
    world.away = lambda: httpx.Response(status, headers={"Retry-After": "7"})
    await call(False)
    assert 7 in world.pauses


@each_call
async def test_another_error_is_raised_at_once(world: World, call: Call) -> None:
    world.away = lambda: httpx.Response(404)
    with pytest.raises(NotFound):
        await call(False)
    assert world.tries == 2


async def test_a_server_that_is_lost_again_and_again(world: World) -> None:
    """A stream without news may end every 30 seconds. If it ends at once each time, that is an outage."""
    lasts = 30.0
    answers = 0

    def answer(request: httpx.Request) -> httpx.Response:
        def lines() -> Any:
            yield b": ping\n\n"
            world.now += lasts

        nonlocal answers
        answers += 1
        if answers == 40:
            return httpx.Response(204)
        return httpx.Response(200, content=lines())

    world.answer = answer  # type: ignore[method-assign]
    assert await reads(False) == []
    assert answers == 40
    lasts = 0.01
    with pytest.raises(ClientError, match="again and again"):
        await reads(False)
    assert answers > 41


def test_a_time_out_is_no_outage(world: World) -> None:
    world.back_at = 0.0

    def answer(request: httpx.Request) -> httpx.Response:
        world.now += int(request.url.params.get("wait", "0")) + 0.001
        return httpx.Response(200, json=RUNNING)

    world.answer = answer  # type: ignore[method-assign]
    with Client("http://127.0.0.1:1") as client, pytest.raises(WaitedTooLong):
        client.wait("f", "e", timeout_seconds=40)
