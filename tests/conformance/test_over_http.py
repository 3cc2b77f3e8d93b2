"""The conformance cases through the HTTP API of a real server of two processes, without those that wait for long."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.conformance.cases import FlowCase, Reply, flow_cases
from tests.conformance.scripted_functions import PATIENCE_SECONDS, ScriptedFunctions, over_http
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

SECONDS_MAX = 2

Client = httpx.Client


def _is_short(case: FlowCase) -> bool:
    return sum(case.expect.get("pauses_seconds", [])) <= SECONDS_MAX and case.expect["status"] != "TimedOut"


RUN = [case for case in flow_cases() if case.refused is None and _is_short(case)]
REFUSED = [case for case in flow_cases() if case.refused is not None]


@pytest.fixture(scope="module")
def client_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Client]]:
    """A client of a server with the given profile of limits."""
    clients: dict[str, Client] = {}
    with ExitStack() as stack:

        def find_or_start(limits: str) -> Client:
            if limits not in clients:
                database_url = f"sqlite:///{tmp_path_factory.mktemp(limits)}/flows.db"
                server = stack.enter_context(ServerProcess(database_url, "--limits", limits, "--processes", "2"))
                client = Client(base_url=server.url, trust_env=False, timeout=2 * PATIENCE_SECONDS)
                clients[limits] = stack.enter_context(client)
            return clients[limits]

        yield find_or_start


def report(client: Client, token: str, reply: Reply) -> None:
    """Report a task's result through the service's API."""
    form = {"Action": "ReportTaskSucceeded", "TaskToken": token, "Output": json.dumps(reply.returns)}
    if reply.raises is not None:
        form = {"Action": "ReportTaskFailed", "TaskToken": token, "Error": reply.raises, "Cause": reply.cause}
    client.post("/", data=form).raise_for_status()


def keep_flow(client: Client, name: str, definition: str) -> httpx.Response:
    """Create a flow; no flow of that name, nor an execution of it, is left."""
    client.delete(f"/v1/flows/{name}")
    return client.post("/v1/flows", json={"name": name, "definition": definition})


def run(client: Client, flow_input: dict[str, Any]) -> dict[str, Any]:
    """Run the execution `exec1` of the flow `conf` to its end; adds the entered steps, in order."""
    start = {"name": "exec1", "input": flow_input}
    execution = client.post("/v1/flows/conf/executions", params={"wait": PATIENCE_SECONDS}, json=start).json()
    events = client.get("/v1/flows/conf/executions/exec1/events", params={"limit": 1000}).json()["events"]
    return execution | {"entered": [event["stepName"] for event in events if event["type"] == "StepEntered"]}


@pytest.mark.parametrize("case", RUN, ids=str)
def test_flow(client_of: Callable[[str], Client], case: FlowCase) -> None:
    client = client_of(case.limits)
    script = ScriptedFunctions(case, lambda token, reply: report(client, token, reply))
    with FunctionServer(script.answer) as functions:
        functions.register(str(client.base_url), *script.titles)
        for name, definition in (script.children | {"conf": case.flow}).items():
            keep_flow(client, name, definition).raise_for_status()
        came_of_it = run(client, case.input)
    expected = dict(case.expect)
    expected.pop("pauses_seconds", None)  # checked in virtual time; here they are only short
    for name, events in expected.pop("received", {}).items():
        assert sorted(map(json.dumps, script.received[name])) == sorted(map(json.dumps, events))
    assert {key: came_of_it[key] for key in expected} == over_http(case, expected)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(client_of: Callable[[str], Client], case: FlowCase) -> None:
    refusal = keep_flow(client_of(case.limits), "conf", case.flow)
    assert (refusal.status_code, refusal.json()["code"]) == (400, "InvalidArgument")
    assert case.refused in {diagnostic["id"] for diagnostic in refusal.json()["diagnostics"]}
