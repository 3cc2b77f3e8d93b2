"""`python -m tests.benchmarks.attacks NAME URL SECONDS`: one hostile client in its own process.

It prints a line when the attack has begun, repeats the attack for the given time, and exits. A separate process keeps
the client's own cost out of the latencies that the benchmark measures. The target is always a server on this machine
that the benchmark has started.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.benchmarks import definitions
from tests.benchmarks.client import Client, rpc

MIB = 1024 * 1024

BUILD_UP_SECONDS = 2.0
"""Within this time each attack reaches its full size."""


@dataclass(frozen=True)
class Attack:
    """One way to harm other users of a server."""

    about: str
    strike: Callable[[str, str], Awaitable[None]]
    """Attacks once, given the server's base URL and the flow's name; repeated until the time is over. A refusal raises
    nothing but an OSError.
    """
    definition: str | None = None
    """The flow that must exist."""
    prepare: Callable[[Client, str], Awaitable[None]] | None = None
    """Prepares the attack, in the flow of that name."""
    functions: tuple[str, ...] = ()
    """Paths of the benchmark's function process that the flow calls."""


def _executions(input: object, at_once: int = 1) -> Callable[[str, str], Awaitable[None]]:
    """Start this many executions, and wait for their ends."""
    text = json.dumps(input)

    async def one(client: Client, flow: str) -> None:
        reply = await client.call(rpc("StartExecution", FlowName=flow, Input=text))
        if reply.status != 200:
            await asyncio.sleep(0.05)
            return
        waiting = rpc("DescribeExecution", FlowName=flow, ExecutionName=reply.json()["Name"], WaitTimeSeconds=60)
        while b'"Status":"Running"' in (await client.call(waiting)).body:
            pass

    async def strike(url: str, flow: str) -> None:
        async with _client(url) as client:
            await asyncio.gather(*(one(client, flow) for _ in range(at_once)))

    return strike


def _definitions(text: str) -> Callable[[str, str], Awaitable[None]]:
    """Eight definitions at once."""
    action = rpc("CreateFlow", Name="unchecked", Definition=text, Description="-", Type="FDL")

    async def strike(url: str, _: str) -> None:
        async with _client(url) as client:
            await asyncio.gather(*(client.call(action) for _ in range(8)))

    return strike


async def _headers(url: str, _: str) -> None:
    """40 MB of short headers on one connection, sent as fast as the server reads them, and held."""
    async with _connection(url) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(400):
            writer.write(b"a: b\r\n" * 16_667)
            await writer.drain()
        await reader.read()


async def _half_sent(url: str, _: str) -> None:
    """2,000 connections whose request never ends, held until the server closes them."""
    writers = []
    try:
        for _ in range(2_000):
            reader, writer = await asyncio.open_connection(*_address(url))
            writers.append(writer)
            writer.write(b"POST /v1/flows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf")
        await reader.read()
    finally:
        for writer in writers:
            writer.close()


async def _slow_heads(url: str, _: str) -> None:
    """2,000 connections that send a request's head, a byte a second each."""
    writers = []
    try:
        for _ in range(2_000):
            _, writer = await asyncio.open_connection(*_address(url))
            writers.append(writer)
            writer.write(b"GET /v1/flows HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        while any(not writer.transport.is_closing() for writer in writers):
            for number, writer in enumerate(writers):
                writer.write(b"a")
                if number % 20 == 0:
                    await asyncio.sleep(0.01)
    finally:
        for writer in writers:
            writer.close()


async def _unread_streams(url: str, flow: str) -> None:
    """200 event streams of an execution with a history of several MiB, held without reading for a minute."""
    path = f"/v1/flows/{flow}/executions/large/events/stream"
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode()
    writers = []
    try:
        for _ in range(200):
            _, writer = await asyncio.open_connection(*_address(url), limit=1_024)
            writers.append(writer)
            writer.write(request)
            await asyncio.sleep(0.005)
        await asyncio.sleep(60)
    finally:
        for writer in writers:
            writer.transport.abort()


async def _fill(client: Client, flow: str) -> None:
    """One ended execution whose history has pages of several MiB."""
    input = json.dumps({"text": "x" * 200_000})
    await client.call(rpc("StartExecution", FlowName=flow, ExecutionName="large", Input=input))
    waiting = rpc("DescribeExecution", FlowName=flow, ExecutionName="large", WaitTimeSeconds=60)
    (await client.call(waiting)).require(b'"Status":"Succeeded"')
    assert len((await client.call(_page(flow))).body) > 3 * MIB


def _page(flow: str) -> bytes:
    return rpc("GetExecutionHistory", FlowName=flow, ExecutionName="large", Limit=1000)


def _page_request(flow: str) -> bytes:
    body = _page(flow)
    form = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    return form + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def _pages(url: str, flow: str) -> None:
    """40 such pages at once."""
    async with _client(url) as client:
        await asyncio.gather(*(client.call(_page(flow)) for _ in range(40)))


async def _unread_pages(url: str, flow: str) -> None:
    """40 such pages that are requested but not read, for two seconds at a time."""
    writers = []
    try:
        for _ in range(40):
            _, writer = await asyncio.open_connection(*_address(url), limit=1_024)
            writers.append(writer)
            writer.write(_page_request(flow))
        await asyncio.sleep(2)
    finally:
        for writer in writers:
            writer.transport.abort()


ATTACKS: dict[str, Attack] = {
    "waits": Attack(
        "foreach 100 x foreach 100 around a wait, an input of 100 KB",
        _executions({"outer": list(range(100)), "inner": list(range(100)), "text": "x" * 100_000}),
        definitions.nested_waits(),
    ),
    "replies": Attack(
        "foreach over 10,000 items whose function answers 49 KB each",
        _executions({"items": list(range(10_000))}),
        definitions.each_keeping("large"),
        functions=("large",),
    ),
    "headers": Attack("40 MB of short headers on one connection", _headers),
    "half-sent": Attack("2,000 requests that are never sent whole", _half_sent),
    "aliases": Attack("eight definitions of 42 KB with 9,000 aliases at once", _definitions(definitions.aliases())),
    "gotos": Attack("eight definitions of 248 KB with unknown gotos at once", _definitions(definitions.gotos())),
    "hanging": Attack(
        "three executions of foreach 100 on a function that never answers",
        _executions({"items": list(range(100))}, at_once=3),
        definitions.each_keeping("hang"),
        functions=("hang",),
    ),
    "pages": Attack("40 history pages of 4 MB at once", _pages, definitions.passes(), _fill),
    "unread": Attack("40 such pages that are not read", _unread_pages, definitions.passes(), _fill),
    "loop": Attack("a goto loop that carries 80 KB", _executions({"text": "x" * 80_000}), definitions.hot_loop()),
    "slow-heads": Attack("2,000 requests whose heads arrive a byte a second", _slow_heads),
    "unread-streams": Attack("200 event streams that are not read", _unread_streams, definitions.passes(), _fill),
    "gigabyte": Attack(
        "foreach over 100 items whose function answers 1 GiB each",
        _executions({"items": list(range(100))}),
        definitions.each_keeping("gigabyte"),
        functions=("gigabyte",),
    ),
    "trickle": Attack(
        "foreach over 100 items whose function answers a byte every 10 ms",
        _executions({"items": list(range(100))}),
        definitions.each_keeping("trickle"),
        functions=("trickle",),
    ),
    "continues": Attack(
        "a function that sends 100 Continue without end",
        _executions({"items": [0]}),
        definitions.each_keeping("continues"),
        functions=("continues",),
    ),
}
"""By name. Each has the size at which it once did harm."""


SLOW = ("slow-heads", "half-sent", "unread-streams", "gigabyte", "trickle")
"""Attacks beside which another client's p99 stays under `SLOW_P99_MS`: nothing of them has to be computed."""

SLOW_P99_MS = 100.0


def flow_of(name: str) -> str:
    """The name of an attack's flow."""
    return f"hostile-{name}"


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[Client]:
    client = Client(url)
    try:
        yield client
    finally:
        client.close()


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*_address(url))
    try:
        yield reader, writer
    finally:
        writer.close()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80


async def main(name: str, url: str, seconds: float) -> None:
    """Attack until the time is over."""
    print("begun", flush=True)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                try:
                    await ATTACKS[name].strike(url, flow_of(name))
                except OSError:  # the server has closed the connection, or is down
                    await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
