"""Databases of an earlier version (`make.py` says which) with executions at work: they are migrated, and go on."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from flowserver.cli.main import app as program
from flowserver.server import create_app
from flowserver.settings import Settings
from flowserver.store.integrity.violations import list_violations
from flowserver.store.schema.revision import REVISIONS
from tests.api.conftest import client_of
from tests.support.clock import ManualClock

HERE = Path(__file__).parent
BEFORE = "0023"
"""The last migration of that version."""

FLOWS = ("waits", "branches", "loops", "calls", "asks")


@pytest.fixture(params=["sqlite", "postgres"])
def earlier_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of such a database."""
    dump = gzip.decompress((HERE / f"{request.param}.sql.gz").read_bytes()).decode()
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "flows.db")) as file:
            file.executescript(dump)
        return f"sqlite:///{tmp_path}/flows.db"
    url = str(request.getfixturevalue("postgres_url"))
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(dump.encode())
    return url


def migrate(*arguments: str) -> list[str]:
    done = CliRunner().invoke(program, ["migrate", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


async def test_executions_of_an_earlier_version_go_on(earlier_url: str) -> None:
    missing = list(REVISIONS[REVISIONS.index(BEFORE) + 1 :])
    *plan, last = migrate("--plan", "--database-url", earlier_url)
    assert [line.split()[0] for line in plan] == missing
    assert last.endswith(f"lacks {len(missing)} migrations")
    applied = [line.split()[-1] for line in migrate("--database-url", earlier_url) if line.startswith("applied")]
    assert applied == missing

    clock = ManualClock()
    clock.advance(seconds=61)  # the wait steps are due
    app = create_app(Settings(database_url=earlier_url, drain_seconds=0), clock)
    async with app.router.lifespan_context(app), client_of(app) as client:
        [task] = (await client.get("/v1/tasks")).json()["tasks"]
        report = {"taskToken": task["taskToken"], "output": {"answer": 42}}
        assert (await client.post("/v1/tasks/succeed", json=report)).is_success
        ended = {name: await ended_execution(client, name) for name in FLOWS}
        assert {name: each["status"] for name, each in ended.items()} == dict.fromkeys(FLOWS, "Succeeded")
        assert ended["asks"]["output"] == {"answer": 42}
        failed = (await client.get("/v1/flows/fails/executions/run")).json()
        assert (failed["status"], failed["error"]) == ("Failed", "Wrong")
        assert (await client.get("/v1/flows/waits/schedules/hourly")).json()["cronExpression"] == "@every 60m"
        assert "hello" in (await client.get("/queues/work/messages")).text
        with app.state.engine.database.read() as connection:
            assert list_violations(connection, 10) == []


async def ended_execution(client: httpx.AsyncClient, flow: str) -> dict[str, object]:
    answer = await client.get(f"/v1/flows/{flow}/executions/run?wait=60")
    assert answer.is_success, answer.text
    return dict(answer.json())
