"""While attackers hold connections, or functions answer without end, another client's requests all succeed.

On a real server, with bounds of what it reads and keeps. `python -m tests.benchmarks --only neighbours --check`
measures how long the other client waits.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.api.rest.conftest import PASS, WAIT
from tests.benchmarks.definitions import each_keeping
from tests.benchmarks.function import FunctionProcess
from tests.support.processes import peak_bytes_of
from tests.support.server import ServerProcess

ATTACKERS = 60
REQUESTS = 40

HEAD = b"GET /v1/flows HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: a"
BODY = (
    b"PUT /v1/flows/slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"
)
STREAM = b"GET /v1/flows/w/executions/e/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LISTS = b"GET /v1/flows HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20
ATTACKS = {
    "slow heads": (HEAD, b"a"),
    "half bodies": (BODY, b" "),
    "unread streams": (STREAM, b""),
    "unread answers": (LISTS, b""),
}


@contextmanager
def attacking(server: ServerProcess, first: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent `first` and read nothing."""
    with ExitStack() as stack:
        held = []
        for _ in range(ATTACKERS):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(first)
            held.append(one)
        yield held


@pytest.mark.parametrize("attack", ATTACKS)
def test_others_are_served_during_an_attack(sqlite_url: str, attack: str) -> None:
    first, more = ATTACKS[attack]
    with ServerProcess(sqlite_url) as server, httpx.Client(base_url=server.url, timeout=60) as other:
        for flow, text in (("w", WAIT), ("p", PASS)):
            other.put(f"/v1/flows/{flow}", json={"definition": text}).raise_for_status()
        other.post("/v1/flows/w/executions", json={"name": "e"}).raise_for_status()
        with attacking(server, first) as held:
            for number in range(REQUESTS):
                for one in held if more else ():
                    one.sendall(more)
                started = other.post("/v1/flows/p/executions", json={"name": f"e{number}"})
                assert started.status_code == 201, started.text
                assert other.get(f"/v1/flows/p/executions/e{number}").status_code == 200
        assert other.get("/v1/flows/slow").status_code == 404, "no half request was served"
        other.post("/v1/flows/w/executions/e/stop").raise_for_status()
    assert '"level": "ERROR"' not in server.log


MIB = 1_048_576
UNREADABLE = {
    "no HTTP": b"nonsense\r\n\r\n",
    "a wrong URL": b"GET http:///x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a WebSocket": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "a path": b"GET /healthz/\x1b[2J HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one process", "two processes"])
def test_no_client_can_fill_the_log(sqlite_url: str, options: tuple[str, ...]) -> None:
    """Requests that cannot be read, and refused ones, leave no line each: they cost their sender nothing."""
    with ServerProcess(sqlite_url, *options) as server:
        begun = server.log
        for sent in UNREADABLE.values():
            for _ in range(10):
                with socket.create_connection(("127.0.0.1", server.port), timeout=60) as one:
                    one.sendall(sent)
                    assert one.recv(12).startswith(b"HTTP/1.1 ")
        with httpx.Client(base_url=server.url, timeout=60) as other:
            for path, headers in (("/v1/flows", {"X-Forwarded-For": "192.0.2.1"}), ("/none", {}), ("/?Action=x", {})):
                assert other.get(path, headers=headers).status_code >= 400
        while_running = server.log
    assert while_running == begun


CALLS = 100
FUNCTIONS = {"gigabyte": (60, 20 * MIB, "FnF.InvalidLocal"), "trickle": (2, 10_000, "FC.Unknown")}
"""Functions of the benchmarks: their time-out in seconds; how much of a reply is sent at most, buffers of sockets
included; how its call ends."""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_others_are_served_while_a_function_answers_without_end(sqlite_url: str, function: str) -> None:
    """Replies of a gigabyte, and replies that come byte by byte."""
    timeout_seconds, read_max, error = FUNCTIONS[function]
    with FunctionProcess({}) as hostile:
        with ServerProcess(sqlite_url) as server, httpx.Client(base_url=server.url, timeout=60) as other:
            where = {"url": f"{hostile.url}/{function}", "timeoutSeconds": timeout_seconds}
            other.put(f"/v1/functions/hostile/{function}", json=where).raise_for_status()
            for flow, text in (("hostile", each_keeping(function)), ("p", PASS)):
                other.put(f"/v1/flows/{flow}", json={"definition": text}).raise_for_status()
            peak = peak_bytes_of(server.process.pid)
            attack = {"name": "e", "input": {"items": list(range(CALLS))}}
            other.post("/v1/flows/hostile/executions", json=attack).raise_for_status()
            for number in range(REQUESTS):
                started = other.post("/v1/flows/p/executions", json={"name": f"e{number}"})
                assert started.status_code == 201, started.text
                assert other.get(f"/v1/flows/p/executions/e{number}").status_code == 200
            ended = other.get("/v1/flows/hostile/executions/e?wait=60").json()
            assert (ended["status"], ended["error"]) == ("Failed", error)
            assert peak_bytes_of(server.process.pid) - peak < 250 * MIB
        # The first call that failed has ended the execution, so some of the others were never sent.
        sent = [int(line.split()[1]) for line in hostile.told()]
        assert sent
        assert max(sent) < read_max
    assert '"level": "ERROR"' not in server.log
