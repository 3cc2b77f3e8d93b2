"""A server with as many connections as it accepts still reaches its database and its functions, and
accepts the next.
"""

import socket
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.function_server import FunctionServer
from tests.support.processes import children_of
from tests.support.server import PATIENCE_SECONDS, ServerProcess

CALLS = """
version: v1
type: flow
steps:
  - type: foreach
    name: each
    iterationMapping: {collection: $.items, item: item}
    steps: [{type: task, name: call, resourceArn: 'acs:fc:::services/s/functions/f'}]
"""
OPEN_FILES_MAX = 128
CONNECTIONS_MAX = 64
CLIENTS = 300


def _open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("processes", ["1", "2"])
def test_more_clients_than_files(sqlite_url: str, processes: str) -> None:
    with (
        FunctionServer() as functions,
        ServerProcess(sqlite_url, "--processes", processes, open_files_max=OPEN_FILES_MAX) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client,
        ExitStack() as opened,
    ):
        speaks_http = server.process.pid if processes == "1" else children_of(server.process.pid)[0]
        functions.register(server.url, "s/f")
        client.post("/v1/flows", json={"name": "f", "definition": CALLS}).raise_for_status()
        files = _open_files(speaks_http)
        idle = [opened.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(CLIENTS)]
        server.wait_for_log(f"{CONNECTIONS_MAX} connections are open")
        started = client.post("/v1/flows/f/executions", json={"name": "e", "input": {"items": list(range(30))}})
        started.raise_for_status()
        ended = client.get("/v1/flows/f/executions/e", params={"wait": PATIENCE_SECONDS}).json()
        assert (ended["status"], len(functions.calls)) == ("Succeeded", 30)
        assert _open_files(speaks_http) <= files + CONNECTIONS_MAX + 30
        for each in idle:
            each.close()
        assert httpx.get(f"{server.url}/healthz", trust_env=False, timeout=PATIENCE_SECONDS).status_code == 200
