"""A real server and a real host: a hosted function's view of a stopped asynchronous invocation."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.fork_server import ForkedProcess
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment, start_flowserver

VIDEO = """\
import threading

ready, told = threading.Event(), []


def prepare(context):
    ready.set()


def transcode(event, context):
    assert ready.is_set()
    print("at work", flush=True)
    if context.stopped.wait(60):
        print("put down my work", flush=True)


def clean_up(context):
    print("cleaned up after", context.request_id, flush=True)
"""
FUNCTIONS = """\
listen: 127.0.0.1:0
functions:
  media/transcode:
    handler: video.py:transcode
    initializer: video.py:prepare
    preStop: video.py:clean_up
"""
TASKS = "/2016-08-15/services/media/functions/transcode"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(f"sqlite:///{tmp_path}/server.db") as running:
        yield running


@pytest.fixture
def host(server: ServerProcess, tmp_path: Path) -> Iterator[ForkedProcess]:
    (tmp_path / "video.py").write_text(VIDEO)
    (tmp_path / "functions.yaml").write_text(FUNCTIONS)
    environment = clean_environment() | {"FLOWSERVER_URL": server.url}
    process = start_flowserver(["functions", "serve", str(tmp_path / "functions.yaml")], environment)
    assert any(line.startswith("Registered with") for line in process.stdout)
    yield process
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)


def read_until(host: ForkedProcess, words: str) -> list[str]:
    """The lines that the host prints, up to one with these words."""
    lines = []
    for line in host.stdout:
        lines.append(line.rstrip())
        if words in line:
            return lines
    raise AssertionError("\n".join(lines))


def test_the_hooks_run_and_the_handler_learns_of_the_stop(server: ServerProcess, host: ForkedProcess) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        headers = {"X-Fc-Invocation-Type": "Async", "X-Fc-Stateful-Async-Invocation-Id": "film"}
        submitted = client.post(f"{TASKS}/invocations", content=b"{}", headers=headers)
        assert submitted.status_code == 202, submitted.text
        request_id = submitted.headers["x-fc-request-id"]
        begun = read_until(host, "at work")
        assert begun[0] == f"FC Initialize Start RequestId: {request_id}"
        assert client.put(f"{TASKS}/stateful-async-invocations/film").status_code == 200
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := client.get(f"{TASKS}/stateful-async-invocations/film").json())["endTime"] == 0:
            assert time.monotonic() < deadline
        assert [event["status"] for event in found["events"]][-3:] == ["Running", "Stopping", "Stopped"]
    host.terminate()
    said = host.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()
    assert "put down my work" in said
    assert f"cleaned up after {request_id}" in said
    assert f"FC PreStop Start RequestId: {request_id}" in said
