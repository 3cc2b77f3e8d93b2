"""Function calls per second and CPU per call of the invoker alone, against a trivial function in another process.

`python -m tests.benchmarks.calls [--calls N] [--in-flight N]`

A plain `aiohttp.ClientSession` posts the same body in turn with the invoker: the ratio of the two holds on a machine
that others use too, absolute figures do not. CPU is user and system, of the thread with the event loop and of the
whole process. It ends by itself: after the calls, or after SECONDS_MAX.
"""

import argparse
import asyncio
import json
import os
import platform
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
import uvloop

from flowserver.base.limits import Limits
from flowserver.invokers.http import HttpInvoker
from flowserver.invokers.invocation import Endpoint, Invocation, Replied
from tests.benchmarks.function import FunctionProcess

SECONDS_MAX = 300
ROUNDS = 10
"""How often the two take turns; the first round only warms up."""

EVENT = '{"order":{"id":12345,"items":[1,2,3]},"note":"hello"}'

Call = Callable[[int], Awaitable[None]]


@dataclass
class Spent:
    """What the calls of one way took."""

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


async def spend(spent: Spent, call: Call, calls: int, in_flight: int) -> None:
    """Make the calls, so many of them at once."""
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
        names = ("bench", f"execution-{number}", "step1")
        invocation = Invocation("bench", "", "echo", EVENT, False, None, f"key-{number}", 0, 60_000, *names)
        reply = await invoker.invoke(invocation, endpoint)
        assert isinstance(reply, Replied), reply

    return call


def call_by_session(session: aiohttp.ClientSession, url: str) -> Call:
    async def call(number: int) -> None:
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"key-{number}"}
        async with session.post(url, data=EVENT.encode(), headers=headers) as response:
            assert json.loads(await response.read())["ok"]

    return call


async def run(url: str, calls: int, in_flight: int) -> dict[str, dict[str, float]]:
    invoker = HttpInvoker(Limits())
    connector = aiohttp.TCPConnector(limit=0)
    spent = {"invoker": Spent(), "aiohttp session": Spent()}
    async with asyncio.timeout(SECONDS_MAX), aiohttp.ClientSession(connector=connector, trust_env=False) as session:
        ways = {"invoker": call_by_invoker(invoker, url), "aiohttp session": call_by_session(session, url)}
        for number in range(ROUNDS + 1):
            for name, call in ways.items():
                await spend(spent[name] if number else Spent(), call, calls // ROUNDS, in_flight)
        await invoker.close()
    return {name: one.figures() for name, one in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000, help="of each way")
    parser.add_argument("--in-flight", type=int, default=64)
    given = parser.parse_args()
    with FunctionProcess() as function:
        figures = uvloop.run(run(f"{function.url}/echo", max(given.calls, ROUNDS), given.in_flight))
    ratio = figures["invoker"]["thread_cpu_us_per_call"] / figures["aiohttp session"]["thread_cpu_us_per_call"]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, aiohttp {aiohttp.__version__}"
    setting = {"machine": machine, "calls": given.calls, "in_flight": given.in_flight}
    print(json.dumps({**setting, **figures, "invoker_to_session": round(ratio, 2)}, indent=2))


if __name__ == "__main__":
    main()
