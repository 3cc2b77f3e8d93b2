"""W1 to W5 and one execution alone, as in `tests.benchmarks.workloads` and `suspended`, against Restate."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable

from tests.benchmarks import definitions
from tests.benchmarks.figures import MIB, Figures, Rows, cost_figures, latency_figures
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.peers.restate import Restate
from tests.benchmarks.suspended import IDLE_SECONDS
from tests.benchmarks.workloads import IN_FLIGHT

WARM_UPS = 4
"""The warm-up in multiples of the server's own warm-up: the handlers' process compiles its hot code."""

Numbers = Iterable[int]


async def calls(restate: Restate) -> Rows:
    """W1."""
    return {"W1": await _many(restate, "calls", 1_000, IN_FLIGHT, b'"amount":42')}


async def passes(restate: Restate) -> Rows:
    """W2."""
    return {"W2": await _many(restate, "passes", 1_000, IN_FLIGHT, b"12345")}


async def alone(restate: Restate) -> Rows:
    """W1's flow, 200 executions one after another."""
    return {"alone": await _many(restate, "calls", 200, 1, b'"amount":42')}


async def parallel(restate: Restate) -> Rows:
    """W3."""
    for _ in range(WARM_UPS):
        (await restate.client.post("/bench/each", definitions.items(100).encode())).require(b"done")
    before = restate.read()
    (await restate.client.post("/bench/each", definitions.items(1_000).encode())).require(b"done")
    after = restate.read()
    took = after["seconds"] - before["seconds"]
    return {"W3": {"p50_ms": 1000 * took} | cost_figures(before, after, 1_000)}


async def suspend_and_complete(restate: Restate) -> Rows:
    """W4."""
    invocations: dict[int, str] = {}
    warm_up = range(64 * WARM_UPS)
    await _suspend(restate, invocations, warm_up, 32)
    await _complete(restate, invocations, warm_up, 32)
    numbers = range(len(warm_up), len(warm_up) + 1_000)
    before = restate.read()
    suspending = await _suspend(restate, invocations, numbers, 32)
    between = restate.read()
    completing = await _complete(restate, invocations, numbers, 32)
    after = restate.read()
    return {
        "W4 suspended": latency_figures(suspending) | cost_figures(before, between, 1_000),
        "W4 completed": latency_figures(completing) | cost_figures(between, after, 1_000),
    }


async def suspend_and_crash(restate: Restate) -> Rows:
    """W5."""
    invocations: dict[int, str] = {}
    empty, before = restate.resident_bytes(), restate.read()
    latencies = await _suspend(restate, invocations, range(10_000), IN_FLIGHT)
    figures = latency_figures(latencies) | cost_figures(before, restate.read(), 10_000)
    figures["memory_grown_mib"] = (restate.resident_bytes() - empty) / MIB
    cpu = restate.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    figures["idle_cpu_percent"] = 100 * (restate.cpu_seconds() - cpu) / IDLE_SECONDS
    began = restate.kill_and_restart()
    await _complete(restate, invocations, [0], 1)
    figures["restart_to_completed_seconds"] = time.perf_counter() - began
    return {"W5": figures}


WORKLOADS: dict[str, Callable[[Restate], Awaitable[Rows]]] = {
    "W1": calls,
    "W2": passes,
    "W3": parallel,
    "W4": suspend_and_complete,
    "W5": suspend_and_crash,
    "alone": alone,
}


async def _many(restate: Restate, flow: str, count: int, in_flight: int, wanted: bytes) -> Figures:
    body = definitions.INPUT.encode()

    async def piece(_: int) -> None:
        (await restate.client.post(f"/bench/{flow}", body)).require(wanted)

    warm_up = WARM_UPS * min(count, max(2 * in_flight, 20))
    await run_in_flight(range(warm_up), in_flight, piece)
    before = restate.read()
    latencies = await run_in_flight(range(count), in_flight, piece)
    return latency_figures(latencies) | cost_figures(before, restate.read(), count)


async def _suspend(restate: Restate, invocations: dict[int, str], numbers: Numbers, in_flight: int) -> list[float]:
    async def piece(number: int) -> None:
        name = f"callback-{number}"
        token = restate.reports.token_of(name)
        reply = await restate.client.post("/bench/callback/send", json.dumps({"name": name}).encode())
        assert reply.status in (200, 202), reply.body
        invocations[number] = json.loads(reply.body)["invocationId"]
        await token

    return await run_in_flight(numbers, in_flight, piece)


async def _complete(restate: Restate, invocations: dict[int, str], numbers: Numbers, in_flight: int) -> list[float]:
    async def piece(number: int) -> float:
        token = await restate.reports.token_of(f"callback-{number}")
        waiting = asyncio.create_task(restate.client.get(f"/restate/invocation/{invocations[number]}/attach"))
        await asyncio.sleep(0)  # the waiter's request is on its way
        began = time.perf_counter()
        assert (await restate.client.post(f"/restate/awakeables/{token}/resolve", b'{"ok":true}')).status < 300
        (await waiting).require(b"ok")
        return time.perf_counter() - began

    return await run_in_flight(numbers, in_flight, piece)
