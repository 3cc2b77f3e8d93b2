"""Two cells behind the proxy of the page that describes them: a real Caddy, which finds the cell by path or by host."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import httpx
import pytest

from tests.support.access_key import TOKEN, create_database_with_key
from tests.support.function_server import Call, FunctionServer
from tests.support.ports import free_port
from tests.support.server import PATIENCE_SECONDS, ServerProcess

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "cells.md").read_text("utf-8")
CADDY = Path(sys.executable).parent / "caddy"
ASK = """
version: v1
type: flow
steps:
  - type: task
    name: ask
    resourceArn: acs:fc:::services/shop/functions/notify
    pattern: waitForCallback
    inputMappings: [{target: token, source: $context.task.token}]
"""


@pytest.fixture
def north(migrated_sqlite: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    with _cell("north", migrated_sqlite, tmp_path) as running:
        yield running


@pytest.fixture
def south(migrated_sqlite: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    with _cell("south", migrated_sqlite, tmp_path) as running:
        yield running


def _cell(name: str, migrated: Path, folder: Path) -> ServerProcess:
    file = folder / f"{name}.db"
    file.write_bytes(migrated.read_bytes())
    create_database_with_key(f"sqlite:///{file}")
    return ServerProcess(f"sqlite:///{file}", "--cell", name)


@pytest.fixture
def proxy(north: ServerProcess, south: ServerProcess, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of the proxy."""
    port = free_port()
    file = re.findall(r"^```text\n(\{.*?)^```", PAGE, re.M | re.S)[0]
    for written, real in (("8090", port), ("8091", north.port), ("8092", south.port)):
        assert written in file
        file = file.replace(written, str(real))
    (tmp_path / "Caddyfile").write_text(file.replace(f":{port} {{", f":{port} {{\n\tbind 127.0.0.1"))
    command = [CADDY, "run", "--config", "Caddyfile"]
    home = {"HOME": str(tmp_path)}
    with subprocess.Popen(command, cwd=tmp_path, env=home, stderr=subprocess.PIPE, text=True) as caddy:
        try:
            assert caddy.stderr is not None
            assert any("serving initial configuration" in line for line in caddy.stderr)
            url, bearer = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
            with httpx.Client(base_url=url, headers=bearer, trust_env=False, timeout=PATIENCE_SECONDS) as client:
                yield client
        finally:
            caddy.terminate()


def rpc(proxy: httpx.Client, cell: str, action: str, **parameters: str) -> httpx.Response:
    form = {"Action": action, "Version": "2019-03-15"} | parameters
    return proxy.post("/", data=form, headers={"Host": f"{cell}.flows.example"})


def test_a_report_at_the_wrong_cell_names_the_right_one(proxy: httpx.Client, north: ServerProcess) -> None:
    """A flow is created by path and started by host, in one cell alone; its token settles it there."""
    tokens: Queue[str] = Queue()

    def notified(call: Call) -> dict[str, str]:
        tokens.put(call.event["token"])
        return {}

    with FunctionServer(notified) as functions:
        functions.register(north.url, "shop/notify", token=TOKEN)
        _report_at_both(proxy, tokens)


def _report_at_both(proxy: httpx.Client, tokens: Queue[str]) -> None:
    proxy.put("/north/v1/flows/ask", json={"definition": ASK}).raise_for_status()
    assert rpc(proxy, "south", "DescribeFlow", Name="ask").json()["Code"] == "FlowNotExists"
    assert rpc(proxy, "north", "StartExecution", FlowName="ask", ExecutionName="e").status_code == 200
    place = "/north/v1/flows/ask/executions/e"
    token = tokens.get(timeout=PATIENCE_SECONDS)

    refused = rpc(proxy, "south", "ReportTaskSucceeded", TaskToken=token, Output="{}")
    assert (refused.status_code, refused.json()["Code"]) == (400, "InvalidArgument")
    assert refused.json()["Message"] == "TaskToken is a task token of the cell north, not of the cell south"
    start = {"FlowName": "ask", "CallbackFnFTaskToken": token}
    assert "of the cell north" in rpc(proxy, "south", "StartExecution", **start).json()["Message"]
    assert proxy.get(place).json()["status"] == "Running"

    assert rpc(proxy, "north", "ReportTaskSucceeded", TaskToken=token, Output=json.dumps({"by": "me"})).is_success
    assert proxy.get(f"{place}?wait=30").json()["status"] == "Succeeded"
    page = httpx.get(f"{proxy.base_url}/north/", headers={"Accept": "application/xhtml+xml"}, trust_env=False)
    assert page.headers["content-type"].startswith("text/html")
