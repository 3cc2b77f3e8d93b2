"""Watches the invariant from outside while faults happen, and runs the doctor afterwards."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from flowserver.store.integrity.violations import list_violations
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import is_away
from tests.chaos.journal import Journal
from tests.support.server import clean_environment

LOOK_SECONDS = 1.0
SHOWN = 20
DOCTOR_SECONDS = 600


@asynccontextmanager
async def watched(url: str, journal: Journal) -> AsyncIterator[None]:
    """While the block runs, read the view of violations every second: it is empty after every commit."""
    database = Database(url)
    watching = asyncio.create_task(_watch(database, journal))
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await asyncio.to_thread(database.close)


async def _watch(database: Database, journal: Journal) -> None:
    while True:
        await asyncio.to_thread(check_once, database, journal)
        await asyncio.sleep(LOOK_SECONDS)


def check_once(database: Database, journal: Journal) -> None:
    """Read the view once. Record a complaint for each violation, and if it cannot be read though the database is up."""
    try:
        found = database.run_read(lambda connection: list_violations(connection, SHOWN))
    except Exception as error:
        if not is_away(error):
            journal.complaints.append(f"the view of violations cannot be read: {error!r}")
        return
    journal.checks += 1
    journal.complaints += [f"the invariant is broken: {violation}" for violation in found]


async def run_doctor(url: str, journal: Journal) -> None:
    """Record a complaint for everything that `flowserver doctor --deep` finds."""
    command = [sys.executable, "-m", "flowserver", "doctor", "--deep", "--database-url", url]
    done = await asyncio.to_thread(
        subprocess.run, command, env=clean_environment(), capture_output=True, text=True, timeout=DOCTOR_SECONDS
    )
    if done.returncode != 0:
        journal.complaints.append(f"the doctor says {done.returncode}:\n{done.stdout}{done.stderr}")
