"""A SQLite database that is deleted or replaced under a running server, which reports it and ends."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from flowserver.cli.exit_codes import ExitCode
from tests.support.server import PATIENCE_SECONDS, ServerProcess

FLOW = {"name": "f", "definition": "version: v1\ntype: flow\nsteps: [{type: wait, name: w, duration: 60}]\n"}


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_nothing_is_acknowledged_and_the_server_ends(run, sqlite_url, tmp_path, what, processes):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    backup = tmp_path / "backup.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM INTO ?", [str(backup)])
    with ServerProcess(sqlite_url, "--processes", processes) as server:
        with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
            client.post("/v1/flows", json=FLOW).raise_for_status()
            client.post("/v1/flows/f/executions", json={"name": "kept"}).raise_for_status()
            file.unlink() if what == "deleted" else backup.replace(file)
            assert client.post("/v1/flows/f/executions", json={"name": "lost"}).status_code == 503
        assert server.process.wait(PATIENCE_SECONDS) == ExitCode.UNREACHABLE
    assert f"{file} was {what} under the running server; nothing is written any more" in server.log
    again = run("doctor", "--database-url", sqlite_url)
    assert again.exit_code == (ExitCode.CONFLICT if what == "replaced" else ExitCode.NOT_FOUND)
    assert "flowserver restore FILE" in again.stderr or what == "deleted"
