"""Rows that a node of an earlier version writes into a migrated database are read, resumed and ended by today's nodes.

For a while after a migration, nodes of the version before write into the new tables: they name the columns that they
know. So the rows of the dumps beside this file (`make.py`) are written in that way while a node of today runs.
"""

import asyncio
import gzip
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import MetaData, Table, create_engine, insert, select

from flowserver.server import create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import list_access_keys
from flowserver.store.integrity.violations import list_violations
from flowserver.store.schema.all_tables import metadata
from flowserver.store.sql.database import Database
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS
from tests.support.clock import ManualClock

HERE = Path(__file__).parent
FLOWS = ("waits", "branches", "loops", "calls", "asks")

FIRST = ("secrets",)
"""What the older node wrote when the database was new, before a node of today came."""

OLD_KEY = {"access_key_id": "OLD", "secret": "s", "token_digest": "d", "label": "old", "created_at": 1}
"""An access key as the older version writes it: without a role."""


@dataclass(frozen=True)
class OldRows:
    """The rows of an older node, by table, with the columns that it knows; and today's database."""

    tables: Mapping[Table, Sequence[Mapping[str, Any]]]
    database: Database

    def write(self, *, are_first: bool) -> None:
        """Write those of `FIRST`, or all others."""
        with self.database.write() as connection:
            for table, rows in self.tables.items():
                if rows and (table.name in FIRST) is are_first:
                    connection.execute(insert(table), rows)

    def write_key(self) -> None:
        [keys] = [table for table in self.tables if table.name == "access_keys"]
        with self.database.write() as connection:
            connection.execute(insert(keys), OLD_KEY)


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OldRows]:
    """The rows of the dump, and a migrated database without rows."""
    dump = gzip.decompress((HERE / f"{request.param}.sql.gz").read_bytes()).decode()
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "older.db")) as file:
            file.executescript(dump)
        older, today = f"sqlite:///{tmp_path}/older.db", request.getfixturevalue("sqlite_url")
    else:
        url = str(request.getfixturevalue("postgres_url"))
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(dump.encode())
        older = url.replace("postgresql://", "postgresql+psycopg://")
        today = request.getfixturevalue("migrated_postgres_url")
    database = Database(str(today))
    yield OldRows(_rows_of(older), database)
    database.close()


def _rows_of(url: str) -> dict[Table, list[Mapping[str, Any]]]:
    engine = create_engine(url)
    known = MetaData()
    known.reflect(engine)
    with engine.connect() as connection:
        found = {
            table: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in known.sorted_tables
            if table.name != "alembic_version"
        }
    engine.dispose()
    return found


async def test_rows_of_older_nodes_are_resumed_and_ended(old: OldRows) -> None:
    known = {table.name: set(table.columns.keys()) for table in old.tables}
    added = {f"{table.name}.{each.name}" for table in metadata.sorted_tables for each in table.columns}
    added -= {f"{name}.{column}" for name, columns in known.items() for column in columns}
    assert {"executions.waiting_steps", "queue_messages.traceparent"} <= added, "the older node knows all columns"

    old.write(are_first=True)
    clock = ManualClock()
    url = old.database.url.set(drivername=old.database.url.get_backend_name()).render_as_string(hide_password=False)
    app = create_app(Settings(database_url=url, drain_seconds=0), clock)
    async with app.router.lifespan_context(app), client_of(app) as client:
        (await client.put("/v1/flows/today", json={"definition": PASS})).raise_for_status()
        await asyncio.to_thread(old.write, are_first=False)
        clock.advance(seconds=61)  # the wait steps are due, and the older node is gone
        today = await client.post("/v1/flows/today/executions?wait=60", json={"name": "run"})
        assert today.json()["status"] == "Succeeded"
        [task] = (await client.get("/v1/tasks")).raise_for_status().json()["tasks"]
        report = {"taskToken": task["taskToken"], "output": {"answer": 42}}
        (await client.post("/v1/tasks/succeed", json=report)).raise_for_status()
        ended = {name: await ended_execution(client, name) for name in FLOWS}
        assert {name: each["status"] for name, each in ended.items()} == dict.fromkeys(FLOWS, "Succeeded")
        assert ended["asks"]["output"] == {"answer": 42}
        shown = (await client.get("/v1/executions?limit=100")).raise_for_status().json()["executions"]
        assert {(each["flowName"], each["status"]) for each in shown if each["status"] != "Succeeded"} == {
            ("fails", "Failed")
        }
        assert (await client.get("/v1/flows/waits")).json()["onRetriesExhausted"] == "fail"
        assert (await client.get("/v1/flows/waits/schedules/hourly")).json()["cronExpression"] == "@every 60m"
        assert "hello" in (await client.get("/queues/work/messages")).text
        with app.state.engine.database.read() as connection:
            assert list_violations(connection, 10) == []
    old.write_key()
    with old.database.read() as connection:
        [key] = list_access_keys(connection)
    assert (key.access_key_id, key.role, key.flows, key.expires_at) == ("OLD", "admin", "", None)


async def ended_execution(client: httpx.AsyncClient, flow: str) -> dict[str, object]:
    answer = await client.get(f"/v1/flows/{flow}/executions/run?wait=60")
    assert answer.is_success, answer.text
    return dict(answer.json())
