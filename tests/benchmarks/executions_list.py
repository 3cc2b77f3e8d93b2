"""`GET /v1/executions` over HTTP with a million ended executions of many flows, on SQLite.

The failures are the oldest of all, so the lists that look for them have the furthest to go.
"""

import random
import time
from collections.abc import Callable

from flowserver.machine.state import Status
from flowserver.store.sql.database import Database
from tests.benchmarks.figures import Figures, Rows, cost_figures, latency_figures
from tests.benchmarks.filling import Model, fill, keep_flow
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import Scale, finish

EXECUTIONS = 1_000_000
FLOWS = 20
FAILED_SHARE = 100
"""One execution of so many has failed."""

ASKED = 300
PAGE = 100
BEGAN_MS = 1_700_000_000_000
EVERY_MS = 1_000


async def executions_list(stage: Stage, scale: Scale) -> Rows:
    """Pages of 100, each kind asked 300 times, one request after another."""
    if stage.primary is not None:  # `filling` copies rows as only SQLite can
        return {}
    count = scale(EXECUTIONS, least=40 * FLOWS)
    stage.servers[0].kill()
    fill_flows(stage.database_url, count)
    await stage.kill_and_restart()
    asked = scale(ASKED, least=3)
    return {f"executions-list {kind}": await _ask(stage, kind, path, asked) for kind, path in _kinds(count).items()}


def fill_flows(url: str, count: int) -> None:
    """Add ended executions of 20 flows, `many-a` and so on; one of 100 has failed, and is older than all others."""
    database = Database(url)
    share = count // FLOWS
    for number in range(FLOWS):
        flow = keep_flow(database, _name(number))
        mine = range(number * share, (number + 1) * share)
        failed = mine.start + share // FAILED_SHARE + 1
        fill(database, flow, _model("old", Status.FAILED), range(mine.start, failed), histories=False)
        fill(database, flow, _model("run", Status.SUCCEEDED), range(failed, mine.stop), histories=False)
    database.close()


def _name(number: int) -> str:
    """A flow's name."""
    return f"many-{chr(ord('a') + number)}"


def _model(prefix: str, status: Status) -> Model:
    return Model(prefix, status, 4, BEGAN_MS, EVERY_MS)


def _kinds(count: int) -> dict[str, Callable[[random.Random], str]]:
    """What is asked, by the words of the table."""

    def at(chance: random.Random) -> int:
        return BEGAN_MS + chance.randrange(count) * EVERY_MS

    def instant(at_ms: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1000))

    def minute(chance: random.Random) -> str:
        begin = at(chance)
        return f"startedFrom={instant(begin)}&startedTo={instant(begin + 60_000)}"

    def flow(chance: random.Random) -> str:
        return f"flow={_name(chance.randrange(FLOWS))}"

    return {
        "newest": lambda _: "",
        "any page": lambda chance: f"nextToken={at(chance)}/any",
        "failed": lambda _: "status=Failed",
        "failed by the end": lambda chance: f"status=Failed&endedTo={instant(at(chance))}",
        "failed of one flow by the end": lambda chance: f"{flow(chance)}&status=Failed&endedFrom={instant(BEGAN_MS)}",
        "running": lambda _: "status=Running",
        "a minute": minute,
        "one flow": flow,
        "a prefix of none": lambda _: "namePrefix=absent",
        "an alias of none": lambda _: "qualifier=prod",
    }


async def _ask(stage: Stage, kind: str, query: Callable[[random.Random], str], asked: int) -> Figures:
    chance = random.Random(kind)

    async def ask(_: int) -> None:
        path = f"/v1/executions?limit={PAGE}&{query(chance)}"
        (await stage.client.get(path)).require(b'"executions":[')

    await ask(0)  # which compiles the statements
    before = stage.read()
    seconds = await run_in_flight(range(asked), 1, ask)
    return finish(stage, latency_figures(seconds) | cost_figures(before, stage.read(), asked))
