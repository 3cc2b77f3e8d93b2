"""Many streams of the events of one execution: live while it goes on, and once more after its end; and how long an
event takes from its turn to the stream's client.

The execution waits for the report of a token and then makes calls. It runs once without streams, so that what the
execution itself costs is known and taken off.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable
from datetime import datetime
from itertools import count as counting
from typing import cast

import httptools

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import MIB, Figures, Rows, latency_figures, percentile
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import IN_FLIGHT, SUCCEEDED, Scale
from tests.support.processes import machine_cpu_seconds

FLOW = "followed"
STREAMS = 500
ITEMS = 133
"""Calls of the execution, which make 1,211 events of it."""

FOLLOWED = 20
TURNS = 10
"""Calls of each execution of the loop, one a second."""

INSTANT = re.compile(rb'"time":"([^"]+)"')

OPENED_AT_ONCE = 50
LOOK_SECONDS = 0.02
SETTLED_SECONDS = 2.0
"""For the server to notice that the connections are closed, and to give their memory back."""


OnPart = Callable[[bytes], None]
"""Gets what arrives of a stream."""


async def streams(stage: Stage, scale: Scale) -> Rows:
    """500 streams of one execution of 1,211 events; one row live, one for streams that begin after its end."""
    count, items = scale(STREAMS), scale(ITEMS)
    await stage.create_flow(FLOW, definitions.callback_then_each())
    for execution in ("warm-up", "alone"):
        await _start(stage, execution, items)
        before = stage.cpu_seconds()
        await _complete(stage, execution)
        own = stage.cpu_seconds() - before
    await _start(stage, "live", items)
    settled = SETTLED_SECONDS * min(1.0, scale.factor)
    await _measured(stage, max(2, count // 10), "alone", settled)  # warm-up
    live = await _measured(stage, count, "live", settled, own_seconds=own, is_live=True)
    return {"streams live": live, "streams of the past": await _measured(stage, count, "live", settled)}


async def stream_delay(stage: Stage, scale: Scale) -> Rows:
    """20 executions that call a function every second, each followed by a stream of the last server; alone and with W1.

    The delay runs from the instant that an event bears, which its turn takes before the commit, to its arrival.
    """
    await stage.create_flow("poll-slowly", definitions.polling(pause_seconds=1))
    await stage.create_flow("calls", definitions.calls())
    turns = scale(TURNS)
    rows: Rows = {}
    for title, in_flight in (("warm-up", 0), ("stream delay, alone", 0), ("stream delay, beside W1", IN_FLIGHT)):
        beside = asyncio.create_task(_run_w1(stage, in_flight, title))
        delays = await asyncio.gather(*(_delays(stage, f"{title[-2:]}-{n}", turns) for n in range(FOLLOWED)))
        beside.cancel()
        seconds = [delay for each in delays for delay in each]
        figures = latency_figures(seconds) | {"p95_ms": 1000 * percentile(seconds, 0.95)}
        rows[title] = {f"delay_{name}": value for name, value in figures.items()} | {"events": len(seconds)}
        await asyncio.wait([beside])
        await stage.until_quiet()
    del rows["warm-up"]
    return rows


async def _run_w1(stage: Stage, in_flight: int, prefix: str) -> None:
    """Executions of five calls, until it is cancelled."""
    action = rpc("StartSyncExecution", FlowName="calls", Input=definitions.INPUT)

    async def piece(_: int) -> None:
        (await stage.client.call(action)).require(SUCCEEDED)

    if in_flight:
        await run_in_flight(counting(), in_flight, piece)


async def _delays(stage: Stage, execution: str, turns: int) -> list[float]:
    """Start an execution of the loop and follow it; returns the seconds that each event took, from the second on."""
    action = rpc("StartExecution", FlowName="poll-slowly", ExecutionName=execution, Input=json.dumps({"turns": turns}))
    (await stage.client.call(action)).require(b'"Status"')
    delays: list[float] = []

    def arrived(part: bytes) -> None:
        now = time.time()
        delays.extend(now - datetime.fromisoformat(found.decode()).timestamp() for found in INSTANT.findall(part))

    reader = await open_stream(stage.clients[-1].url, "poll-slowly", execution, on_part=arrived)
    before = len(delays)
    await reader.ended
    await reader.close()
    return delays[before:]


async def _measured(
    stage: Stage, count: int, execution: str, settled_seconds: float, *, own_seconds: float = 0.0, is_live: bool = False
) -> Figures:
    empty, peak = stage.resident_bytes(), 0
    began, cpu, machine = time.perf_counter(), stage.cpu_seconds(), machine_cpu_seconds()
    generator = time.process_time()
    readers: list[Stream] = []

    async def open_one(_: int) -> None:
        readers.append(await open_stream(stage.client.url, FLOW, execution))

    async def watch_memory() -> None:
        nonlocal peak
        while True:
            peak = max(peak, stage.resident_bytes())
            await asyncio.sleep(LOOK_SECONDS)

    watching = asyncio.create_task(watch_memory())
    await run_in_flight(range(count), OPENED_AT_ONCE, open_one)
    if is_live:
        await _complete(stage, execution)
    await asyncio.gather(*(reader.ended for reader in readers))
    seconds, used = time.perf_counter() - began, stage.cpu_seconds() - cpu - own_seconds
    others = machine_cpu_seconds() - machine - (stage.cpu_seconds() - cpu) - (time.process_time() - generator)
    watching.cancel()
    await asyncio.gather(*(reader.close() for reader in readers))
    await asyncio.sleep(settled_seconds)
    (events,) = {reader.events for reader in readers}
    return {
        "streams": count,
        "events": events,
        "cpu_us_per_event_and_stream": 1e6 * used / (count * events),
        "stream_cpu_seconds": used,
        "elapsed_seconds": seconds,
        "memory_grown_mib": (peak - empty) / MIB,
        "memory_kept_mib": (stage.resident_bytes() - empty) / MIB,
        "chunks_each": sum(reader.chunks for reader in readers) / count,
        "others_cores": max(0.0, others) / seconds,
    }


async def _start(stage: Stage, execution: str, items: int) -> None:
    action = rpc("StartExecution", FlowName=FLOW, ExecutionName=execution, Input=definitions.items(items))
    (await stage.client.call(action)).require(b'"Status"')
    await stage.reports.token_of(execution)
    await stage.until_quiet()


async def _complete(stage: Stage, execution: str) -> None:
    """Report the token, and wait for the end."""
    token = await stage.reports.token_of(execution)
    action = rpc("ReportTaskSucceeded", TaskToken=token, Output=json.dumps({"ok": True}))
    (await stage.client.call(action)).require(b"EventId")
    (await stage.describe_end(FLOW, execution)).require(SUCCEEDED)


async def open_stream(
    url: str, flow: str, execution: str, *, query: str = "", on_part: OnPart = lambda _: None
) -> "Stream":
    """A stream whose first event has come."""
    host, _, port = url.removeprefix("http://").partition(":")
    path = f"/v1/flows/{flow}/executions/{execution}/events/stream{query}"
    _, protocol = await asyncio.get_running_loop().create_connection(lambda: Stream(on_part), host, int(port))
    protocol.transport.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    await protocol.begun
    return protocol


class Stream(asyncio.Protocol):
    """Counts events, and does nothing else, since it shares the server's cores."""

    MARK = b"\ndata: "

    def __init__(self, on_part: OnPart) -> None:
        self._on_part = on_part
        self.transport: asyncio.Transport
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self.events = self.chunks = 0
        self._parser = httptools.HttpResponseParser(self)
        self._tail = b""

    async def close(self) -> None:
        """Close the connection, and wait until it is closed."""
        self.transport.close()
        await self._closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._closed.set_result(None)
        if not self.ended.done():
            self.ended.set_exception(ConnectionResetError("the server closed the connection"))

    # Callbacks of the parser

    def on_body(self, part: bytes) -> None:
        self.chunks += 1
        self._on_part(part)
        text = self._tail + part
        self.events += text.count(self.MARK)
        self._tail = text[-len(self.MARK) + 1 :]
        if not self.begun.done():
            self.begun.set_result(None)

    def on_message_complete(self) -> None:
        assert self._parser.get_status_code() == 200
        self.ended.set_result(None)
