"""A writer that crashes in a real server: callers get errors, the process ends, and a supervisor starts it again."""

import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from flowserver.cli.exit_codes import ExitCode
from tests.support.server import PATIENCE_SECONDS, ServerProcess

FLOW = {"name": "f", "definition": "version: v1\ntype: flow\nsteps: [{type: wait, name: w, duration: 60}]\n"}

BUG = """
import os
from pathlib import Path
from flowserver.engine.commit.fair_queue import FairQueue

def take(queue, take=FairQueue.take):
    if Path(os.environ["BUG_IF_THERE"]).exists():
        raise ZeroDivisionError("a bug outside all items")
    return take(queue)

FairQueue.take = take
"""
"""What Python imports before it runs the server."""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_server_ends_and_can_be_started_again(sqlite_url: str, tmp_path: Path, processes: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(BUG)
    switch = tmp_path / "switch"
    environment = {"PYTHONPATH": str(tmp_path), "BUG_IF_THERE": str(switch)}
    with (
        ServerProcess(sqlite_url, "--processes", processes, environment=environment, python=sys.executable) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        client.post("/v1/flows", json=FLOW).raise_for_status()
        client.post("/v1/flows/f/executions", json={"name": "kept"}).raise_for_status()
        switch.touch()
        assert client.post("/v1/flows/f/executions", json={"name": "lost"}).status_code == 503
        with suppress(httpx.TransportError):  # it may have stopped listening
            assert client.get("/readyz").status_code == 503
        assert server.process.wait(PATIENCE_SECONDS) == ExitCode.CRASHED
    assert "ZeroDivisionError: a bug outside all items" in server.log
    assert "the server ends, because its writer has crashed" in server.log
    with ServerProcess(sqlite_url) as server:
        executions = httpx.get(f"{server.url}/v1/flows/f/executions", trust_env=False).raise_for_status().json()
    assert [each["name"] for each in executions["executions"]] == ["kept"]
