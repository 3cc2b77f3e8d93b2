"""A complete run from its settings: creates the database, starts servers, runs the plan, and cleans up."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import aiohttp

from tests.chaos.databases import RunDatabase, open_database
from tests.chaos.run import Outcome, Plan, Run
from tests.chaos.starters import Starter, fast_starter, plain_starter


def _ignore(_: str) -> None:
    pass


def run_chaos(
    kind: str, plan: Plan, *, fast_start: bool, kept: Path | None = None, log: Callable[[str], None] = _ignore
) -> Outcome:
    """Run the plan on a database of this kind, in `kept` (which then stays) or in a temporary folder."""
    with contextlib.ExitStack() as stack:
        folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        starter = stack.enter_context(fast_starter() if fast_start else plain_starter())
        database = stack.enter_context(open_database(kind, folder))
        return asyncio.run(_play(plan, database, folder, starter, log))


async def _play(
    plan: Plan, database: RunDatabase, folder: Path, starter: Starter, log: Callable[[str], None]
) -> Outcome:
    connector = aiohttp.TCPConnector(limit=0, force_close=False)
    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
        return await Run(plan, database.url, folder, starter, session, database.restart, log).play()
