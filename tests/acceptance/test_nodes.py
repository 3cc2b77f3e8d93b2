"""Several real servers on one PostgreSQL: stopped, leaving, joining, restarted in sequence, and without a database."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import httpx
import pytest

from tests.support.function_server import Call, FunctionServer
from tests.support.server import ServerProcess

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60
TWO_CALLS = """
version: v1
type: flow
steps:
  - {type: task, name: one, resourceArn: "acs:fc:::services/shop/functions/one"}
  - {type: task, name: two, resourceArn: "acs:fc:::services/shop/functions/two"}
"""


class Gate:
    """Functions of which some wait until the test lets them answer."""

    def __init__(self) -> None:
        self.arrived: dict[tuple[str, int], threading.Event] = {}
        self.opened: dict[tuple[str, int], threading.Event] = {}
        self.attempts: Counter[tuple[str, str, int]] = Counter()

    def hold(self, function: str, attempt: int) -> tuple[str, int]:
        """From now on that attempt waits."""
        key = (function, attempt)
        self.arrived[key], self.opened[key] = threading.Event(), threading.Event()
        return key

    def answer(self, call: Call) -> Any:
        attempt = int(call.headers["x-flowserver-attempt"])
        self.attempts[call.headers["idempotency-key"], call.function, attempt] += 1
        key = (call.function, attempt)
        if key in self.arrived:
            self.arrived[key].set()
            assert self.opened[key].wait(PATIENCE_SECONDS)
        return {"by": f"{call.function}#{attempt}"}


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def functions(gate: Gate) -> Iterator[FunctionServer]:
    with FunctionServer(gate.answer) as server:
        yield server


def client(server: ServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False)


def start(server: ServerProcess, name: str) -> None:
    with client(server) as http:
        http.post("/v1/flows/f/executions", json={"name": name}).raise_for_status()


def end_of(server: ServerProcess, name: str) -> Any:
    with client(server) as http:
        row = http.get(f"/v1/flows/f/executions/{name}", params={"wait": PATIENCE_SECONDS}).json()
    assert row["status"] == "Succeeded", row
    return row["output"]


def prepare(server: ServerProcess, functions: FunctionServer, definition: str = TWO_CALLS) -> None:
    functions.register(server.url, "shop/one", "shop/two")
    with client(server) as http:
        http.post("/v1/flows", json={"name": "f", "definition": definition}).raise_for_status()


def test_a_node_frozen_past_its_lease_writes_nothing(
    migrated_postgres_url: str, functions: FunctionServer, gate: Gate
) -> None:
    """Another node takes its calls over, and the replies that it finds when it wakes up have no effect."""
    first, second = gate.hold("shop/one", 1), gate.hold("shop/one", 2)
    with ServerProcess(migrated_postgres_url) as frozen, ServerProcess(migrated_postgres_url) as other:
        prepare(frozen, functions)
        start(frozen, "e")
        assert gate.arrived[first].wait(PATIENCE_SECONDS)
        frozen.process.send_signal(signal.SIGSTOP)
        assert gate.arrived[second].wait(PATIENCE_SECONDS)  # the other node makes the call again
        gate.opened[first].set()  # the old answer reaches the frozen node's socket ...
        frozen.process.send_signal(signal.SIGCONT)
        frozen.wait_for_log("was taken for dead; it continues under the new id")
        gate.opened[second].set()
        assert end_of(frozen, "e") == {"by": "shop/two#1"}
        with client(frozen) as http:
            events = http.get("/v1/flows/f/executions/e/events").json()["events"]
        results = [event["detail"] for event in events if event["type"] == "TaskSucceeded"]
        assert ["shop/one#2" in str(result) for result in results] == [True, False]  # ... and nothing else
        start(frozen, "e2")  # it continues as another node
        assert end_of(other, "e2")


def test_a_stopping_node_hands_over_at_once(migrated_postgres_url: str, functions: FunctionServer, gate: Gate) -> None:
    """The call under way ends on the leaving node; the other node runs the step after it."""
    one = gate.hold("shop/one", 1)
    with (
        ServerProcess(migrated_postgres_url, "--drain-seconds", "60") as leaving,
        ServerProcess(migrated_postgres_url) as staying,
    ):
        prepare(leaving, functions)
        start(leaving, "e")
        assert gate.arrived[one].wait(PATIENCE_SECONDS)
        leaving.process.send_signal(signal.SIGTERM)
        leaving.wait_for_log("stopped answering requests")
        gate.opened[one].set()
        assert end_of(staying, "e") == {"by": "shop/two#2"}  # ordered by the leaving node, made by the other
        assert sorted(key[1:] for key in gate.attempts) == [("shop/one", 1), ("shop/two", 2)]
        assert leaving.process.wait(PATIENCE_SECONDS) == 0


def test_nodes_are_restarted_in_sequence_under_load(
    migrated_postgres_url: str, functions: FunctionServer, gate: Gate
) -> None:
    """Clients repeat failed requests at the next node, without checks; every execution runs once and succeeds."""
    servers = [ServerProcess(migrated_postgres_url) for _ in range(2)]
    everyone = [*servers]
    try:
        prepare(servers[0], functions)
        over, acknowledged = threading.Event(), threading.Semaphore(0)
        with ThreadPoolExecutor(4) as pool:
            loads = [pool.submit(_load, servers, worker, over, acknowledged) for worker in range(4)]
            for index in range(2):
                _wait_for_some(acknowledged)
                old = servers[index]
                started = ServerProcess(migrated_postgres_url)
                servers[index] = started
                everyone.append(started)
                old.stop()
            _wait_for_some(acknowledged)
            over.set()
            names = [name for load in loads for name in load.result()]
        assert len(names) > 20
        for name in names:
            end_of(servers[0], name)
        made = Counter((key, function) for key, function, _ in gate.attempts.elements())
        # On a machine that pauses for two seconds a running node is rightly declared dead.
        was_slow = any("taken for dead" in server.log for server in everyone)
        assert was_slow or set(made.values()) == {1}, "an orderly restart repeats no call"
        assert len(made) == 2 * len(names)
    finally:
        for server in everyone:
            server.kill()


def _wait_for_some(acknowledged: threading.Semaphore) -> None:
    """Wait until eight more executions were acknowledged."""
    for _ in range(8):
        assert acknowledged.acquire(timeout=PATIENCE_SECONDS)


def _load(
    servers: list[ServerProcess], worker: int, over: threading.Event, acknowledged: threading.Semaphore
) -> list[str]:
    """Start executions until it is over; returns the acknowledged ones."""
    names: list[str] = []
    clients: dict[str, httpx.Client] = {}
    for turn in cycle((0, 1)):
        if over.is_set():
            break
        names.append(f"e{worker}-{len(names)}")
        for attempt in range(1_000):
            url = servers[(turn + attempt) % 2].url
            http = clients.setdefault(url, httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False))
            try:
                reply = http.post("/v1/flows/f/executions", json={"name": names[-1]})
                http.get(f"/v1/flows/f/executions/{names[-1]}", params={"wait": 2})
            except httpx.TransportError:
                continue
            if reply.status_code in (429, 503):
                continue
            # A repeated start may find its execution ended already, which is an acknowledgement, too.
            assert reply.is_success or reply.json()["code"] == "ExecutionAlreadyExists", reply.text
            acknowledged.release()
            break
    for http in clients.values():
        http.close()
    return names
