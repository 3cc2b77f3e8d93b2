"""`flowserver copy`: a database with running work moves from SQLite to PostgreSQL and back, and goes on there."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from sqlalchemy import insert, select, update

from flowserver.store.database_copy import copied_tables
from flowserver.store.schema.all_tables import metadata
from flowserver.store.schema.queue_tables import queue_messages
from flowserver.store.sql.database import Database
from tests.cli.conftest import one_line
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

WAITS = """
version: v1
type: flow
steps:
- {type: task, name: call, resourceArn: "acs:fc:::services/shop/functions/charge"}
- {type: wait, name: w, duration: 80000}
"""
ENDS = 'version: v1\ntype: flow\nsteps: [{type: pass, name: p, outputMappings: [{target: k, source: "ü\\u2028"}]}]\n'


def rows_of(url: str) -> dict[str, list[tuple]]:
    """The rows of each table, without what the audit says of copies."""
    database = Database(url)
    with database.read() as connection:
        found = {
            table.name: sorted(map(repr, connection.execute(select(table)).all())) for table in metadata.sorted_tables
        }
    database.close()
    found["audit_records"] = [row for row in found["audit_records"] if "'database.copy'" not in row]
    return found


@pytest.fixture
def functions():
    with FunctionServer() as running:
        yield running


def test_running_work_moves_to_postgres_and_back(run, sqlite_url, postgres_url, tmp_path, functions):
    with ServerProcess(sqlite_url) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        functions.register(server.url, "shop/charge")
        for flow, definition in (("waits", WAITS), ("ends", ENDS)):
            client.put(f"/v1/flows/{flow}", json={"definition": definition}).raise_for_status()
        client.post("/v1/flows/ends/executions?wait=30", json={"name": "e"}).raise_for_status()
        client.post("/v1/flows/waits/executions", json={"name": "w"}).raise_for_status()
        server.kill()
    before = rows_of(sqlite_url)
    assert before["executions"]
    assert before["scopes"]

    copied = run("copy", sqlite_url, postgres_url)
    assert (copied.exit_code, copied.stderr) == (0, "")
    assert "every row is the same in both" in copied.stdout
    assert rows_of(postgres_url) == before | {"nodes": []}
    assert before["audit_records"], "it is copied, too"

    with ServerProcess(postgres_url) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        in_use = run("copy", postgres_url, f"sqlite:///{tmp_path}/early.db")
        assert in_use.exit_code == 5
        assert "use the database" in one_line(in_use)
        client.get("/v1/flows/ends/executions/e").raise_for_status()
        client.post("/v1/flows/waits/executions/w/stop").raise_for_status()

    target = tmp_path / "back.db"
    assert run("copy", postgres_url, f"sqlite:///{target}").exit_code == 0
    assert rows_of(f"sqlite:///{target}") == rows_of(postgres_url)
    assert target.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(target)) as connection:
        copies = connection.execute("SELECT api, object FROM audit_records WHERE operation = 'database.copy'")
        assert copies.fetchall() == [("CLI", "database")] * 2
    assert run("doctor", "--deep", "--database-url", f"sqlite:///{target}").exit_code == 0


def test_every_table_is_copied_but_the_nodes_and_links():
    left_out = {table.name for table in metadata.sorted_tables} - {table.name for table in copied_tables()}
    assert left_out == {"nodes", "sign_in_links"}


def test_a_sign_in_link_makes_no_second_key_in_the_copy(run, sqlite_url, new_url):
    assert run("keys", "create", "--database-url", sqlite_url).exit_code == 0
    assert run("keys", "create", "--sign-in-link", "--database-url", sqlite_url).exit_code == 0
    assert len(rows_of(sqlite_url)["sign_in_links"]) == 1
    assert run("copy", sqlite_url, new_url).exit_code == 0
    assert rows_of(new_url)["sign_in_links"] == []
    assert len(rows_of(new_url)["access_keys"]) == 1
    assert len(rows_of(sqlite_url)["sign_in_links"]) == 1


def test_refusals_change_nothing(run, sqlite_url, postgres_url, new_url, tmp_path):
    itself = run("copy", sqlite_url, sqlite_url)
    assert (itself.exit_code, one_line(itself)) == (2, "flowserver: a database cannot be copied into itself")
    missing = run("copy", f"sqlite:///{tmp_path}/gone.db", new_url)
    assert missing.exit_code == 3
    assert not Path(new_url.removeprefix("sqlite:///")).exists()
    with ServerProcess(sqlite_url):
        assert "another flowserver uses this database" in one_line(run("copy", sqlite_url, new_url))

    database = Database(sqlite_url)
    message = {"queue": "q", "message_id": "m", "body": "a\0b", "body_md5": "", "priority": 8, "is_ready": True}
    instants = dict.fromkeys(("visible_at", "enqueued_at", "expires_at"), 1)
    with database.write() as connection:
        connection.execute(insert(queue_messages), message | instants | {"dequeue_count": 0})
    nul = run("copy", sqlite_url, postgres_url)
    assert nul.exit_code == 5
    assert "the row q, m of queue_messages cannot be copied: it contains a NUL character" in one_line(nul)
    with database.write() as connection:
        connection.execute(update(queue_messages).values(body="ab"))
    assert run("copy", sqlite_url, postgres_url).exit_code == 0, "the refused copy left the target empty"

    full = run("copy", sqlite_url, postgres_url)
    assert (full.exit_code, one_line(full)) == (
        5,
        "flowserver: the target has rows in audit_records; it must be empty",
    )
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE queue_messages SET priority = 'high'")
        connection.commit()
    damaged = run("copy", sqlite_url, new_url)
    assert "the row q, m of queue_messages is damaged: its priority is of type str" in one_line(damaged)
    database.close()
