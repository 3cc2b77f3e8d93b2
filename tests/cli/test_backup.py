"""`flowserver backup`, and the restore of what it wrote: the drill of an operator."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import one_line
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

CALL = """
version: v1
type: flow
steps: [{type: task, name: call, resourceArn: "acs:fc:::services/shop/functions/charge"}]
"""


@pytest.fixture
def functions():
    with FunctionServer() as running:
        yield running


def start(client: httpx.Client, name: str) -> None:
    ended = client.post("/v1/flows/order/executions?wait=30", json={"name": name}).raise_for_status().json()
    assert ended["status"] == "Succeeded"


def test_a_server_that_runs_is_backed_up_and_restored_and_calls_since_are_listed(run, sqlite_url, tmp_path, functions):
    backup, place = tmp_path / "backup.db", ("--database-url", sqlite_url)
    with ServerProcess(sqlite_url) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        functions.register(server.url, "shop/charge")
        client.put("/v1/flows/order", json={"definition": CALL}).raise_for_status()
        start(client, "before")
        made = run("backup", backup, *place)
        assert (made.exit_code, made.stderr) == (0, "")
        assert made.stdout.startswith(f"backed up {tmp_path / 'flowserver.db'} to {backup}: ")
        start(client, "after")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.glob("backup.db*")] == ["backup.db"]
    assert run("doctor", "--deep", "--database-url", f"sqlite:///{backup}").exit_code == 0

    restored = run("restore", backup, *place)
    assert restored.exit_code == 0
    assert "1 executions have called functions since the backup" in restored.stdout
    assert "  order/after\n" in restored.stdout
    assert "order/before" not in restored.stdout
    with ServerProcess(sqlite_url) as server:
        found = httpx.get(f"{server.url}/v1/flows/order/executions", trust_env=False).json()["executions"]
    assert [each["name"] for each in found] == ["before"]


def test_a_backup_replaces_no_file_and_leaves_none_behind(run, sqlite_url, tmp_path):
    place = ("--database-url", sqlite_url)
    taken = tmp_path / "taken"
    taken.write_text("keep")
    refused = run("backup", taken, *place)
    assert (refused.exit_code, one_line(refused)) == (
        5,
        f"flowserver: there is a file {taken}; choose another name",
    )
    assert taken.read_text() == "keep"
    missing = run("backup", tmp_path / "none" / "backup.db", *place)
    assert (missing.exit_code, "No such file or directory" in one_line(missing)) == (1, True)
    assert run("backup", tmp_path / "b.db", "--database-url", f"sqlite:///{tmp_path}/gone.db").exit_code == 3
    postgres = run("backup", tmp_path / "b.db", "--database-url", "postgresql://127.0.0.1:1/flows")
    assert postgres.exit_code in (2, 4)
    assert not (tmp_path / "b.db").exists()


def test_a_damaged_database_gives_no_backup(run, sqlite_url, tmp_path):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'executions'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as raw:
        raw.seek((root - 1) * size)
        raw.write(b"\xff" * 100)
    refused = run("backup", tmp_path / "backup.db", "--database-url", sqlite_url)
    assert refused.exit_code == 1
    assert "there is no backup" in one_line(refused)
    assert list(tmp_path.glob("backup.db*")) == []
