"""Function calls per second and CPU per call of the invoker alone, against a trivial function in another process.

`python -m tests.benchmarks.calls [--calls N] [--in-flight N]`

Other clients post the same body in turn with the invoker: aiohttp's session, httpx, and, if installed, httpx over
aiohttp's transport and pyreqwest (`pip install httpx-aiohttp pyreqwest`). On a shared machine the ratios are reliable
and the absolute figures are not. CPU is user and system time, of the event loop's thread and of the whole process. The
program ends after the calls, or after SECONDS_MAX.
"""

import argparse
import asyncio
import json
import os
import platform
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import httpx
import uvloop

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Endpoint, Invocation, Replied
from flowserver.invokers.http import HttpInvoker
from tests.benchmarks.bytecode import compiled
from tests.benchmarks.function import FunctionProcess

try:
    from httpx_aiohttp import HttpxAiohttpClient
except ImportError:
    HttpxAiohttpClient = None
try:
    from pyreqwest.client import ClientBuilder
except ImportError:
    ClientBuilder = None

SECONDS_MAX = 300
ROUNDS = 10
"""The number of rounds in which the clients take turns; the first only warms up."""

EVENT = '{"order":{"id":12345,"items":[1,2,3]},"note":"hello"}'

Call = Callable[[int], Awaitable[None]]


@dataclass
class Cost:
    """The cost of one client's calls."""

    calls: int = 0
    seconds: float = 0.0
    thread_cpu: float = 0.0
    process_cpu: float = 0.0

    def figures(self) -> dict[str, float]:
        return {
            "calls_per_second": round(self.calls / self.seconds),
            "thread_cpu_us_per_call": round(self.thread_cpu / self.calls * 1e6, 1),
            "process_cpu_us_per_call": round(self.process_cpu / self.calls * 1e6, 1),
        }


async def spend(spent: Cost, call: Call, calls: int, in_flight: int) -> None:
    """Make the calls, this many at a time."""
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    began, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    spent.seconds += time.perf_counter() - began
    spent.thread_cpu += time.thread_time() - thread
    spent.process_cpu += time.process_time() - process
    spent.calls += calls


def call_by_invoker(invoker: HttpInvoker, url: str) -> Call:
    endpoint = Endpoint(url, {"Authorization": "Bearer benchmark"}, 60)

    async def call(number: int) -> None:
        invocation = Invocation(
            service="bench",
            qualifier="",
            function="echo",
            event=EVENT,
            invocation_id=None,
            idempotency_key=f"key-{number}",
            attempt=1,
            timeout_ms=60_000,
            flow_name="bench",
            execution_name=f"execution-{number}",
            step_name="step1",
        )
        reply = await invoker.invoke(invocation, endpoint)
        assert isinstance(reply, Replied), reply

    return call


def headers_of(number: int) -> dict[str, str]:
    return {"Content-Type": "application/json", "Idempotency-Key": f"key-{number}"}


def call_by_session(session: aiohttp.ClientSession, url: str) -> Call:
    async def call(number: int) -> None:
        async with session.post(url, data=EVENT.encode(), headers=headers_of(number)) as response:
            assert json.loads(await response.read())["ok"]

    return call


def call_by_httpx(client: httpx.AsyncClient, url: str) -> Call:
    async def call(number: int) -> None:
        response = await client.post(url, content=EVENT, headers=headers_of(number))
        assert json.loads(response.content)["ok"]

    return call


def call_by_reqwest(client: Any, url: str) -> Call:
    async def call(number: int) -> None:
        response = await client.post(url).headers(headers_of(number)).body_bytes(EVENT.encode()).build().send()
        assert json.loads(bytes(await response.bytes()))["ok"]

    return call


async def open_ways(stack: AsyncExitStack, url: str) -> dict[str, Call]:
    """Every installed client, and its way to make a call."""
    invoker = HttpInvoker(Limits())
    stack.push_async_callback(invoker.close)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=False)
    limits = httpx.Limits(max_connections=None)
    ways = {
        "invoker": call_by_invoker(invoker, url),
        "aiohttp session": call_by_session(await stack.enter_async_context(session), url),
        "httpx": call_by_httpx(
            await stack.enter_async_context(httpx.AsyncClient(limits=limits, timeout=60, trust_env=False)), url
        ),
    }
    if HttpxAiohttpClient is not None:
        client = HttpxAiohttpClient(limits=limits, timeout=60, trust_env=False)
        ways["httpx over aiohttp"] = call_by_httpx(await stack.enter_async_context(client), url)
    if ClientBuilder is not None:
        reqwest = await stack.enter_async_context(ClientBuilder().no_proxy().build())
        ways["pyreqwest"] = call_by_reqwest(reqwest, url)
    return ways


async def run(url: str, calls: int, in_flight: int) -> dict[str, dict[str, float]]:
    async with asyncio.timeout(SECONDS_MAX), AsyncExitStack() as stack:
        ways = await open_ways(stack, url)
        spent = {name: Cost() for name in ways}
        for number in range(ROUNDS + 1):
            for name, call in ways.items():
                await spend(spent[name] if number else Cost(), call, calls // ROUNDS, in_flight)
    return {name: one.figures() for name, one in spent.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000, help="of each way")
    parser.add_argument("--in-flight", type=int, default=64)
    given = parser.parse_args(arguments)
    with FunctionProcess(compiled()) as function:
        figures = uvloop.run(run(f"{function.url}/echo", max(given.calls, ROUNDS), given.in_flight))
    for one in figures.values():
        one["times_the_invoker"] = round(
            one["process_cpu_us_per_call"] / figures["invoker"]["process_cpu_us_per_call"], 2
        )
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, aiohttp {aiohttp.__version__}"
    print(json.dumps({"machine": machine, "calls": given.calls, "in_flight": given.in_flight, **figures}, indent=2))


if __name__ == "__main__":
    main()
