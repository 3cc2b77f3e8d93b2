"""A crash of the writer in a real server: callers get errors, the process ends, and a supervisor starts it again."""

import socket
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
"""Code that Python runs before the server."""

CALL = "{type: task, name: t, resourceArn: 'acs:fc:::services/shop/functions/pay'}"


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
        with suppress(httpx.TransportError):  # it may have crashed for its own work, and stopped listening
            assert client.post("/v1/flows/f/executions", json={"name": "lost"}).status_code == 503
            assert client.get("/readyz").status_code == 503
        assert server.process.wait(PATIENCE_SECONDS) == ExitCode.CRASHED
    assert "ZeroDivisionError: a bug outside all items" in server.log
    assert "the server ends, because its writer has crashed" in server.log
    with ServerProcess(sqlite_url) as server:
        executions = httpx.get(f"{server.url}/v1/flows/f/executions", trust_env=False).raise_for_status().json()
    assert [each["name"] for each in executions["executions"]] == ["kept"]


def test_a_crash_while_calls_are_drained_ends_the_server_as_well(sqlite_url: str, tmp_path: Path) -> None:
    """No request is under way any more; the writer crashes on the result of a call."""
    (tmp_path / "sitecustomize.py").write_text(BUG)
    switch = tmp_path / "switch"
    environment = {"PYTHONPATH": str(tmp_path), "BUG_IF_THERE": str(switch)}
    with (
        socket.create_server(("127.0.0.1", 0)) as function,
        ServerProcess(sqlite_url, "--drain-seconds", "600", environment=environment, python=sys.executable) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        function.settimeout(PATIENCE_SECONDS)
        url = f"http://127.0.0.1:{function.getsockname()[1]}/"
        client.put("/v1/functions/shop/pay", json={"url": url}).raise_for_status()
        flow = {"name": "f", "definition": f"version: v1\ntype: flow\nsteps: [{CALL}]\n"}
        client.post("/v1/flows", json=flow).raise_for_status()
        client.post("/v1/flows/f/executions", json={"name": "e"}).raise_for_status()
        call, _ = function.accept()
        with call:
            call.recv(65_536)
            server.process.terminate()
            server.wait_for_log("stopped answering requests")
            switch.touch()
            call.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            assert server.process.wait(PATIENCE_SECONDS) == ExitCode.CRASHED
    assert "the server ends, because its writer has crashed" in server.log
