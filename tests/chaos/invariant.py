"""Watches the invariant from outside, while faults are under way, and has the doctor look at everything afterwards."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sqlalchemy.exc import SQLAlchemyError

from flowserver.store.breaches import list_breaches
from flowserver.store.database import Database
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
        with suppress(SQLAlchemyError):  # PostgreSQL may be away
            found = await asyncio.to_thread(database.run_read, lambda connection: list_breaches(connection, SHOWN))
            journal.looks += 1
            journal.complaints += [f"the invariant is broken: {breach}" for breach in found]
        await asyncio.sleep(LOOK_SECONDS)


async def consult_doctor(url: str, journal: Journal) -> None:
    """Complain of whatever `flowserver doctor --deep` finds."""
    command = [sys.executable, "-m", "flowserver", "doctor", "--deep", "--database-url", url]
    done = await asyncio.to_thread(
        subprocess.run, command, env=clean_environment(), capture_output=True, text=True, timeout=DOCTOR_SECONDS
    )
    if done.returncode != 0:
        journal.complaints.append(f"the doctor says {done.returncode}:\n{done.stdout}{done.stderr}")
