"""Watches the invariant from outside, while faults are under way, and has the doctor look at everything afterwards."""

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
    """While the block runs, look at the view of violations every second: there are none at any commit."""
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
        await asyncio.to_thread(look, database, journal)
        await asyncio.sleep(LOOK_SECONDS)


def look(database: Database, journal: Journal) -> None:
    """Read the view once and complain of what it shows, or that it cannot be read although the database is there."""
    try:
        found = database.run_read(lambda connection: list_violations(connection, SHOWN))
    except Exception as error:
        if not is_away(error):
            journal.complaints.append(f"the view of violations cannot be read: {error!r}")
        return
    journal.looks += 1
    journal.complaints += [f"the invariant is broken: {breach}" for breach in found]


async def consult_doctor(url: str, journal: Journal) -> None:
    """Complain of whatever `flowserver doctor --deep` finds."""
    command = [sys.executable, "-m", "flowserver", "doctor", "--deep", "--database-url", url]
    done = await asyncio.to_thread(
        subprocess.run, command, env=clean_environment(), capture_output=True, text=True, timeout=DOCTOR_SECONDS
    )
    if done.returncode != 0:
        journal.complaints.append(f"the doctor says {done.returncode}:\n{done.stdout}{done.stderr}")
