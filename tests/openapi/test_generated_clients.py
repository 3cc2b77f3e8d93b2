"""Clients that two generators make from the OpenAPI document call every operation."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from flowserver.api.rest.openapi import openapi_document
from flowserver.api.rest.router import ROUTERS
from tests.openapi.conftest import FOLDER
from tests.support.node import NODE
from tests.support.server import ServerProcess, clean_environment

PACKAGES = os.environ.get("FLOWSERVER_TEST_OPENAPI_CLIENT") or str(FOLDER.parents[1] / ".venv" / "openapi-client")
"""Where `make testing` installs openapi-python-client, which allows no newer typer."""

GENERATORS = {
    "openapi-python-client": (sys.executable, str(FOLDER / "python_client.py")),
    "hey-api": (NODE, str(FOLDER / "node_client.mjs")),
}

NAMES = {
    **{"flow": "order", "execution": "order-4711", "schedule": "nightly", "version": "1", "alias": "prod"},
    **{
        "service": "shop",
        "function": "charge",
        "invocation": "none",
        "name": "KEY",
        "queue": "jobs",
        "topic": "orders",
    },
}
QUERIES = {"list_iterations": {"step": "charge"}}
OTHER_NAMES = {
    "create_flow": "second",
    "create_flow_alias": "second",
    "create_schedule": "second",
    "start_execution": "second",
}
REFUSED = {
    **{"put_secret": 409, "get_secret": 404, "delete_secret": 404},
    **{"get_invocation": 404, "restart_invocation": 404, "stop_invocation": 404},
    **{"stop_execution": 400, "restart_execution": 400},
    **{"report_task_succeeded": 400, "report_task_failed": 400, "sign_in": 401},
}
"""Operations that need what no example makes, such as the token of a waiting task; the client reads the problem."""

FIRST = ("PUT", "POST", "PATCH", "GET", "DELETE")


def calls() -> list[dict[str, Any]]:
    """One call of each operation, with the names and bodies of the examples; those that delete come last."""
    found = []
    for path, methods in openapi_document(ROUTERS)["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = content.get("example")
            if name in OTHER_NAMES:
                body = {**body, "name": OTHER_NAMES[name]}
            named = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
            call = {
                "id": name,
                "path": {each: NAMES[each] for each in named},
                "query": QUERIES.get(name, {}),
                "body": body,
            }
            found.append((FIRST.index(method.upper()), -path.count("/"), call))
    return [call for _, _, call in sorted(found, key=lambda each: each[:2])]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server with the flow, its versions, the execution, the function, the queue and the topic of the examples."""
    with ServerProcess(f"sqlite:///{tmp_path}/flows.db") as server:
        with httpx.Client(base_url=server.url, trust_env=False) as client:
            components = openapi_document(ROUTERS)["components"]["schemas"]
            client.put("/v1/functions/shop/charge", json={"url": "http://127.0.0.1:1/charge"}).raise_for_status()
            client.put("/v1/flows/order", json=components["PutFlow"]["examples"][0]).raise_for_status()
            for number in range(3):
                body = {"description": f"number {number}"}
                client.post("/v1/flows/order/versions", json=body).raise_for_status()
            client.put("/queues/jobs", content="<Queue></Queue>").raise_for_status()
            client.put("/topics/orders", content="<Topic></Topic>").raise_for_status()
            body = components["StartExecution"]["examples"][0]
            client.post("/v1/flows/order/executions?wait=60", json=body).raise_for_status()
        yield server.url
        assert "ERROR" not in server.log


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_generated_client_calls_every_operation(generator: str, document: Path, url: str, tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    done = subprocess.run(
        [*GENERATORS[generator], str(document), str(tmp_path / "client"), url],
        input="".join(f"{json.dumps(call)}\n" for call in calls()),
        env=clean_environment() | {"PYTHONPATH": PACKAGES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    replies = {reply["id"]: reply for reply in map(json.loads, done.stdout.split("\n")[:-1])}
    assert len(replies) == len(calls())
    assert [name for name, reply in replies.items() if not reply["isRead"] and reply["status"] != 204] == []
    refused = {name: reply["status"] for name, reply in replies.items() if not 200 <= reply["status"] < 300}
    assert refused == REFUSED
