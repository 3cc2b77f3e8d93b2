"""`python -m tests.chaos.rolling_upgrade`: nodes of an earlier version are replaced one by one while executions go on.

python -m tests.chaos.rolling_upgrade --from f7bb9d3d
python -m tests.chaos.rolling_upgrade --from ../earlier-checkout --nodes 2 --pause 3 --executions 100

The earlier version makes the database and serves; this version migrates it under load; then a node of this version
starts and one of the earlier version stops, until none is left. Every start and report that any of them acknowledged
must be there at the end, and every execution must have succeeded.
"""

import argparse
import asyncio
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp

from tests.chaos.checkouts import HERE, Checkout, checkout_of
from tests.chaos.invariant import run_doctor, watched
from tests.chaos.journal import Journal
from tests.chaos.upgrade_load import UpgradeLoad
from tests.support.postgres import fresh_database, running_postgres
from tests.support.server import ServerProcess

SHOWN = 20
"""Complaints that are printed."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a drill."""

    nodes: int
    executions_max: int
    per_second: float
    pause_seconds: float
    """For this time each mixture of nodes serves."""
    minutes: float
    seed: int


@dataclass
class Outcome:
    """The results of a drill."""

    load: UpgradeLoad
    journal: Journal
    begun_before: int
    """Executions that were started while only nodes of the earlier version ran."""
    crossing: int
    """Of those, the ones that ended when only nodes of this version did."""
    seconds: float

    @property
    def summary(self) -> str:
        """The figures of the drill."""
        load, journal = self.load, self.journal
        reports = sum(len(each.reports) for each in load.started.values())
        repeated = sum(load.calls.values()) - len(load.calls)
        return (
            f"{len(load.started):,} executions in {self.seconds:.0f} s, {self.begun_before:,} of them begun before the "
            f"first new node, {self.crossing:,} of these ended after the last old one; {reports:,} reports "
            f"acknowledged; {sum(load.calls.values()):,} calls of functions, {repeated:,} of them repeated; "
            f"{journal.unanswered:,} requests repeated; {journal.checks:,} checks of the invariant"
        )


@dataclass
class _Nodes:
    """The servers of a drill; `urls` are of those that serve now."""

    database_url: str
    urls: list[str] = field(default_factory=list)
    _servers: list[ServerProcess] = field(default_factory=list)

    async def start(self, checkout: Checkout) -> None:
        server = await asyncio.to_thread(checkout.serve, self.database_url)
        self._servers.append(server)
        self.urls.append(server.url)

    async def stop_oldest(self) -> None:
        """Stop it; it must end with exit code 0. Clients find out by themselves."""
        server = self._servers.pop(0)
        await asyncio.to_thread(server.stop)
        self.urls.remove(server.url)

    async def stop_all(self) -> None:
        while self._servers:
            await self.stop_oldest()

    def kill(self) -> None:
        for server in self._servers:
            server.kill()


async def drill(plan: Plan, old: Checkout, new: Checkout, database_url: str, journal: Journal) -> Outcome:
    """Replace the nodes; raises TimeoutError if it takes longer than the plan allows."""
    nodes = _Nodes(database_url)
    async with AsyncExitStack() as stack:
        stack.callback(nodes.kill)
        await stack.enter_async_context(asyncio.timeout(60 * plan.minutes))
        session = await stack.enter_async_context(aiohttp.ClientSession(trust_env=False))
        await asyncio.to_thread(old.migrate, database_url)
        for _ in range(plan.nodes):
            await nodes.start(old)
        load = UpgradeLoad(session, nodes.urls, journal, plan.seed)
        async with load.running(plan.executions_max, plan.per_second):
            journal.log(f"{plan.nodes} nodes of {old.name} serve")
            await asyncio.sleep(plan.pause_seconds)
            journal.log((await asyncio.to_thread(new.migrate, database_url)).strip().splitlines()[-1])
            async with watched(database_url, journal):  # from now on this version knows the view
                await asyncio.sleep(plan.pause_seconds)
                before = list(load.started)
                for number in range(plan.nodes):
                    await nodes.start(new)
                    journal.log(f"new node {number + 1} serves")
                    await asyncio.sleep(plan.pause_seconds)
                    await nodes.stop_oldest()
                    journal.log(f"old node {number + 1} has stopped")
                    await asyncio.sleep(plan.pause_seconds)
                crossing = await load.running_of(before)
        await load.check()
        await nodes.stop_all()
    await run_doctor(database_url, journal)
    return Outcome(load, journal, len(before), crossing, time.monotonic() - journal.began)


def main() -> int:
    arguments = _arguments()
    plan = Plan(
        nodes=arguments.nodes,
        executions_max=arguments.executions,
        per_second=arguments.rate,
        pause_seconds=arguments.pause,
        minutes=arguments.minutes,
        seed=arguments.seed,
    )
    journal = Journal(time.monotonic(), _log)
    new = Checkout("this checkout", HERE)
    with checkout_of(arguments.source) as old, running_postgres() as server, fresh_database(server) as url:
        outcome = asyncio.run(drill(plan, old, new, url, journal))
    print(outcome.summary)
    for complaint in journal.complaints[:SHOWN]:
        print(complaint)
    print("FAILED" if journal.complaints else "passed: nothing was lost, and every execution succeeded", flush=True)
    return int(bool(journal.complaints))


def _log(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.rolling_upgrade", description="Replace nodes of an earlier version under load."
    )
    parser.add_argument("--from", dest="source", required=True, help="the earlier version: a folder, or a git revision")
    parser.add_argument("--nodes", type=int, default=3, help="servers of each version (default 3)")
    parser.add_argument("--executions", type=int, default=300, help="start at most this many (default 300)")
    parser.add_argument("--rate", type=float, default=5.0, help="starts a second (default 5)")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds with each mixture of nodes (default 4)")
    parser.add_argument("--minutes", type=float, default=10.0, help="fail after this time (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="of delays and of the choice of servers (default 1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
