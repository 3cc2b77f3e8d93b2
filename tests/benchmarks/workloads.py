"""W1 to W3, and one execution alone: executions from start to result."""

from dataclasses import dataclass

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import MIB, Figures, Rows, cost_figures, latency_figures
from tests.benchmarks.load import Piece, run_in_flight
from tests.benchmarks.stage import Stage

SUCCEEDED = b'"Status":"Succeeded"'
IN_FLIGHT = 64


@dataclass(frozen=True)
class Scale:
    """The size of a workload: 1 is the full size, tests use less."""

    factor: float

    def __call__(self, count: int, least: int = 2) -> int:
        """The count, scaled."""
        return max(least, round(count * self.factor))


async def calls(stage: Stage, scale: Scale) -> Rows:
    """W1: 1,000 executions of five function calls, 64 in flight."""
    await stage.create_flow("calls", definitions.calls())
    return {"W1": await _many(stage, "calls", scale(1_000), IN_FLIGHT)}


async def passes(stage: Stage, scale: Scale) -> Rows:
    """W2: 1,000 executions of ten pass steps, 64 in flight."""
    await stage.create_flow("passes", definitions.passes())
    return {"W2": await _many(stage, "passes", scale(1_000), IN_FLIGHT)}


async def alone(stage: Stage, scale: Scale) -> Rows:
    """W1's flow, 200 executions one after another."""
    await stage.create_flow("alone", definitions.calls())
    return {"alone": await _many(stage, "alone", scale(200), 1)}


async def parallel(stage: Stage, scale: Scale) -> Rows:
    """W3: one execution with 1,000 parallel calls, after a smaller one as warm-up; the count is that of the calls."""
    count = scale(1_000)
    await stage.create_flow("each", definitions.each())
    await start_sync(stage, "each", definitions.items(max(1, count // 10)))(0)
    before = stage.read()
    await start_sync(stage, "each", definitions.items(count))(1)
    after = stage.read()
    took = [after["seconds"] - before["seconds"]]
    return {"W3": finish(stage, {"p50_ms": 1000 * took[0]} | cost_figures(before, after, count))}


async def _many(stage: Stage, flow: str, count: int, in_flight: int) -> Figures:
    piece = start_sync(stage, flow, definitions.INPUT)
    warm_up = min(count, max(2 * in_flight, 20))
    await run_in_flight(range(warm_up), in_flight, piece)
    before = stage.read()
    latencies = await run_in_flight(range(warm_up, warm_up + count), in_flight, piece)
    return finish(stage, latency_figures(latencies) | cost_figures(before, stage.read(), count))


def start_sync(stage: Stage, flow: str, input: str) -> Piece:
    """StartSyncExecution, on the servers in turn; raises AssertionError for an execution that does not succeed."""
    action = rpc("StartSyncExecution", FlowName=flow, Input=input)

    async def piece(number: int) -> None:
        client = stage.clients[number % len(stage.clients)]
        (await client.call(action + b"&ExecutionName=e%d" % number)).require(SUCCEEDED)

    return piece


def finish(stage: Stage, figures: Figures) -> Figures:
    """With the peak memory of a server so far."""
    return figures | {"peak_mib": stage.peak_bytes() / MIB}
