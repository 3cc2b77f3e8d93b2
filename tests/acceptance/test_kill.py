"""Kill the server at any moment: acknowledged executions continue on the same data as if nothing had happened."""

import random
from collections import defaultdict
from threading import Event
from typing import Any

import httpx
import pytest

from tests.support.function_server import Call, FunctionServer
from tests.support.server import ServerProcess

EXECUTIONS = 8
KILLS = 2
CALLS_BETWEEN_KILLS = 9
PATIENCE_SECONDS = 60

FLOW = """
version: v1
type: flow
steps:
  - type: task
    name: first
    resourceArn: acs:fc:::services/shop/functions/count
    inputMappings: [{target: n, source: $input.n}]
  - type: wait
    name: nap
    duration: 1
  - type: parallel
    name: both
    branches:
      - steps:
          - {type: task, name: left, resourceArn: "acs:fc:::services/shop/functions/count"}
      - steps:
          - type: foreach
            name: each
            iterationMapping: {collection: $.items, item: item}
            steps:
              - {type: task, name: right, resourceArn: "acs:fc:::services/shop/functions/count"}
            outputMappings: [{target: seen, source: "$local[*].n"}]
    outputMappings: [{target: seen, source: "$local[1].seen"}]
  - type: task
    name: child
    resourceArn: acs:fnf:::flow/child
    pattern: sync
"""
CHILD = """
version: v1
type: flow
steps:
  - type: task
    name: ask
    resourceArn: acs:fc:::services/shop/functions/ask
    pattern: waitForCallback
    inputMappings: [{target: token, source: $context.task.token}]
outputMappings: [{target: answer, source: $local.answer}]
"""


class Shop:
    """The functions; they signal the test when enough calls have been made for a kill."""

    def __init__(self) -> None:
        self.attempts: dict[str, list[int]] = defaultdict(list)
        self.tokens: set[str] = set()
        self.enough = Event()
        self.until = 0
        self._calls = 0

    def answer(self, call: Call) -> Any:
        """Count the call under its idempotency key."""
        self.attempts[call.headers["idempotency-key"]].append(int(call.headers["x-flowserver-attempt"]))
        if call.function == "shop/ask":
            self.tokens.add(call.event["token"])
        self._calls += 1
        if self._calls >= self.until:
            self.enough.set()
        return {"n": call.event.get("n")}

    def expect(self, further_calls: int) -> None:
        """Set `enough` after that many further calls."""
        self.enough.clear()
        self.until = self._calls + further_calls


def client(server: ServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS + 10, trust_env=False)


def prepare(server: ServerProcess, functions: FunctionServer) -> None:
    functions.register(server.url, "shop/count", "shop/ask")
    with client(server) as http:
        for name, definition in (("main", FLOW), ("child", CHILD)):
            http.post("/v1/flows", json={"name": name, "definition": definition}).raise_for_status()
        for n in range(EXECUTIONS):
            start = {"name": f"e{n}", "input": {"n": n, "items": [1, 2, 3]}}
            http.post("/v1/flows/main/executions", json=start).raise_for_status()


def settle_callbacks(http: httpx.Client, shop: Shop) -> None:
    """Report every known task; those that were reported before a kill are answered so."""
    for token in sorted(shop.tokens):
        reply = http.post("/v1/tasks/succeed", json={"taskToken": token, "output": {"answer": 42}})
        assert reply.status_code == 200 or reply.json()["code"] == "TaskAlreadyCompleted", reply.text


@pytest.mark.parametrize("processes", ["1", "2"])
def test_executions_end_correctly_after_kills_at_any_moment(any_url: str, processes: str) -> None:
    dice = random.Random(20261121)
    shop = Shop()
    with FunctionServer(shop.answer) as functions:
        server = ServerProcess(any_url, "--migrate", "--processes", processes)
        prepare(server, functions)
        for _ in range(KILLS):
            shop.expect(dice.randrange(1, CALLS_BETWEEN_KILLS))
            shop.enough.wait(2)  # after the last call of this stretch there is nothing to wait for
            server.kill()
            server = ServerProcess(any_url, "--processes", processes)
            with client(server) as http:
                settle_callbacks(http, shop)
        with server, client(server) as http:
            rows = [await_end(http, f"e{n}", shop) for n in range(EXECUTIONS)]
    assert [(row["status"], row["output"]) for row in rows] == [
        ("Succeeded", {"n": n, "seen": [n, n, n], "answer": 42}) for n in range(EXECUTIONS)
    ]
    assert all(numbers == sorted(set(numbers)) and numbers[0] >= 1 for numbers in shop.attempts.values())
    assert any(numbers[-1] > 1 for numbers in shop.attempts.values()), "no kill interrupted a call"
    assert len(shop.attempts) == EXECUTIONS * 6, "a step's calls all carry one idempotency key"


def await_end(http: httpx.Client, name: str, shop: Shop) -> dict[str, Any]:
    """The execution once it has ended; its callbacks are reported as they arrive."""
    for _ in range(PATIENCE_SECONDS):
        settle_callbacks(http, shop)
        row: dict[str, Any] = http.get(f"/v1/flows/main/executions/{name}", params={"wait": 1}).json()
        if row["status"] != "Running":
            return row
    raise AssertionError(f"{name} is stuck: {http.get(f'/v1/flows/main/executions/{name}/events').text}")
