"""Kill the server between redrives: each is made once, finished steps stay finished, and every execution ends.

An execution that waits for a redrive waits through all the kills, makes no call meanwhile, and is redriven at the end.
"""

from collections import Counter
from threading import Event, Lock
from typing import Any

import httpx

from tests.support.function_server import Call, FunctionServer
from tests.support.server import ServerProcess

EXECUTIONS = 6
WAITING = 9
"""The number of the execution that waits for a redrive."""
ITEMS = 5
PATIENCE_SECONDS = 60

FLOW = """
version: v1
type: flow
steps:
  - type: task
    name: reserve
    resourceArn: acs:fc:::services/shop/functions/reserve
  - type: foreach
    name: pack
    iterationMapping: {collection: $.items, item: item}
    steps:
      - {type: task, name: label, resourceArn: "acs:fc:::services/shop/functions/label"}
    outputMappings: [{target: labels, source: "$local[*].label"}]
"""


class Shop:
    """Functions; `label` fails for item 3 until it is repaired."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, int]] = Counter()
        """Successful calls by function and execution, and by item if there is one."""
        self.is_repaired = False
        self.met = Event()
        self._lock = Lock()

    def answer(self, call: Call) -> Any:
        with self._lock:
            n, item = call.event["n"], call.event.get("item", 0)
            if self.is_repaired:
                self.met.set()
            elif item == 3:
                raise ValueError("no paper")
            self.calls[call.function, 10 * n + item] += 1
            return {"label": item} if item else {}


def test_redrives_are_made_once_after_kills_at_any_moment(any_url: str) -> None:
    shop = Shop()
    with FunctionServer(shop.answer) as functions:
        server = ServerProcess(any_url, "--migrate")
        with client(server) as http:
            functions.register(server.url, "shop/reserve", "shop/label")
            http.post("/v1/flows", json={"name": "main", "definition": FLOW}).raise_for_status()
            for n in range(EXECUTIONS):
                start = {"name": f"e{n}", "input": {"n": n, "items": list(range(1, ITEMS + 1))}}
                http.post("/v1/flows/main/executions", json=start).raise_for_status()
            assert {ended(http, n)["status"] for n in range(EXECUTIONS)} == {"Failed"}
            http.patch("/v1/flows/main", json={"onRetriesExhausted": "waitForRedrive"}).raise_for_status()
            start = {"name": f"e{WAITING}", "input": {"n": WAITING, "items": list(range(1, ITEMS + 1))}}
            http.post("/v1/flows/main/executions", json=start).raise_for_status()
            until_only_one_step_waits(http)
        reserved = {key: times for key, times in shop.calls.items() if key[0] == "shop/reserve"}
        shop.is_repaired = True
        for n in range(EXECUTIONS):
            shop.met.clear()
            with client(server) as http:
                redrive(http, n)
            if n % 2:
                shop.met.wait(2)
            server.kill()
            server = ServerProcess(any_url)
            with client(server) as http:
                redrive(http, n)  # as a client does that got no answer
        with server, client(server) as http:
            assert waiting(http) == [(f"e{WAITING}", "Running", 1, "pack[2].label")]
            assert shop.calls["shop/label", 10 * WAITING + 3] == 0
            redrive(http, WAITING)
            redriven = ended(http, WAITING)
            assert (redriven["status"], redriven["redriveCount"], waiting(http)) == ("Succeeded", 1, [])
            rows = [ended(http, n) for n in range(EXECUTIONS)]
            kinds = [events(http, n) for n in range(EXECUTIONS)]
    assert [shop.calls["shop/label", 10 * WAITING + item] for item in range(1, ITEMS + 1)] == [1] * ITEMS
    assert [(row["status"], row["redriveCount"]) for row in rows] == [("Succeeded", 1)] * EXECUTIONS
    assert [row["output"]["labels"] for row in rows] == [list(range(1, ITEMS + 1))] * EXECUTIONS
    assert [each.count("ExecutionRedriven") for each in kinds] == [1] * EXECUTIONS
    assert reserved == {key: times for key, times in shop.calls.items() if key[0] == "shop/reserve"}


def client(server: ServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS + 10, trust_env=False)


def redrive(http: httpx.Client, n: int) -> None:
    reply = http.post(f"/v1/flows/main/executions/e{n}/redrive", json={"clientToken": f"t{n}"})
    assert reply.status_code == 200, reply.text


def waiting(http: httpx.Client) -> list[tuple[str, str, int, str]]:
    """The executions that wait for a redrive: their names, statuses, how many steps wait, and the first of them."""
    rows = http.get("/v1/executions", params={"waitingForRedrive": True}).json()["executions"]
    return [(row["name"], row["status"], row["waitingSteps"], row["failedStep"]) for row in rows]


def until_only_one_step_waits(http: httpx.Client) -> None:
    """Return when the execution waits for its redrive only: nothing else of it is open."""
    for number in range(50 + PATIENCE_SECONDS):
        path, seconds = f"/v1/flows/main/executions/e{WAITING}", int(number >= 50)
        row: dict[str, Any] = http.get(path, params={"wait": seconds, "currentSteps": True}).json()
        if [each["status"] for each in row["currentSteps"]] == ["WaitingForRedrive"]:
            return
    raise AssertionError("it does not wait")


def ended(http: httpx.Client, n: int) -> dict[str, Any]:
    for _ in range(PATIENCE_SECONDS):
        row: dict[str, Any] = http.get(f"/v1/flows/main/executions/e{n}", params={"wait": 1}).json()
        if row["status"] != "Running":
            return row
    raise AssertionError(f"e{n} is stuck")


def events(http: httpx.Client, n: int) -> list[str]:
    page = http.get(f"/v1/flows/main/executions/e{n}/events", params={"limit": 1000}).json()
    return [event["type"] for event in page["events"]]
