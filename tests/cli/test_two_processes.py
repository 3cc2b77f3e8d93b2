"""A server of two processes: they end together, and between them nothing is lost, cut or forgotten."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from threading import Event
from typing import Any

import httpx
import pytest

from flowserver.base.limits import Limits
from flowserver.operations.access import make_access_key
from flowserver.store.access_keys import insert_access_key
from flowserver.store.sql.database import Database
from tests.support.function_server import Call, FunctionServer
from tests.support.processes import children_of
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment

CALL = "version: v1\ntype: flow\nsteps: [{type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}]\n"
TWO = ("--processes", "2")


@pytest.fixture
def server(sqlite_url: str) -> Iterator[ServerProcess]:
    with ServerProcess(sqlite_url, *TWO) as running:
        yield running


def client_of(server: ServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS)


def start(client: httpx.Client) -> None:
    client.post("/v1/flows", json={"name": "f", "definition": CALL}).raise_for_status()
    client.post("/v1/flows/f/executions", json={"name": "e"}).raise_for_status()


def front_of(server: ServerProcess) -> int:
    [pid] = children_of(server.process.pid)
    return pid


class Slow:
    """A function whose first call is answered when the test decides, if at all."""

    def __init__(self) -> None:
        self.called, self.answered = Event(), Event()
        self.attempts: list[tuple[str, int]] = []

    def answer(self, call: Call) -> Any:
        attempt = int(call.headers["x-flowserver-attempt"])
        self.attempts.append((call.headers["idempotency-key"], attempt))
        self.called.set()
        if len(self.attempts) == 1:
            assert self.answered.wait(PATIENCE_SECONDS)
        return {"attempt": attempt}


def test_when_the_front_dies_the_server_ends_and_its_calls_are_repeated(sqlite_url: str) -> None:
    slow = Slow()
    with FunctionServer(slow.answer) as functions:
        with ServerProcess(sqlite_url, *TWO) as server:
            functions.register(server.url, "s/f")
            with client_of(server) as client:
                start(client)
                assert slow.called.wait(PATIENCE_SECONDS)
                os.kill(front_of(server), signal.SIGKILL)
                assert server.process.wait(PATIENCE_SECONDS) == 1
        assert "the process that speaks HTTP has ended, and so does this one" in server.log
        slow.answered.set()
        with ServerProcess(sqlite_url, *TWO) as again, client_of(again) as client:
            row = client.get("/v1/flows/f/executions/e", params={"wait": PATIENCE_SECONDS}).json()
    assert (row["status"], row["output"]) == ("Succeeded", {"attempt": 2})
    assert len({key for key, _ in slow.attempts}) == 1


def test_when_the_server_is_killed_its_port_is_free(server: ServerProcess, sqlite_url: str) -> None:
    server.kill()
    with ServerProcess(sqlite_url, *TWO, port=server.port) as again, client_of(again) as client:
        assert client.get("/readyz").status_code == 200


def test_calls_under_way_end_when_the_server_stops(sqlite_url: str) -> None:
    slow = Slow()
    with FunctionServer(slow.answer) as functions:
        with ServerProcess(sqlite_url, *TWO, "--drain-seconds", "60") as server:
            functions.register(server.url, "s/f")
            with client_of(server) as client:
                start(client)
            assert slow.called.wait(PATIENCE_SECONDS)
            server.process.terminate()
            server.wait_for_log("stopped answering requests")
            slow.answered.set()
            assert server.process.wait(PATIENCE_SECONDS) == 0
        with ServerProcess(sqlite_url) as again, client_of(again) as client:
            row = client.get("/v1/flows/f/executions/e", params={"wait": PATIENCE_SECONDS}).json()
    assert (row["status"], row["output"]) == ("Succeeded", {"attempt": 1})
    assert len(slow.attempts) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_both_processes_shuts_it_down(server: ServerProcess, number: signal.Signals) -> None:
    os.kill(front_of(server), number)
    with client_of(server) as client:
        assert client.get("/healthz").status_code == 200
    server.stop(number)
    assert '"message": "stopped"' in server.log.splitlines()[-1]


def test_a_stopped_execution_drops_its_call(server: ServerProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, client_of(server) as client:
        silent.settimeout(PATIENCE_SECONDS)
        function = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/"}
        client.put("/v1/functions/s/f", json=function).raise_for_status()
        start(client)
        connection, _ = silent.accept()
        connection.settimeout(PATIENCE_SECONDS)
        with connection:
            client.post("/v1/flows/f/executions/e/stop").raise_for_status()
            while connection.recv(65_536):
                pass  # its request; then the end


def test_large_bodies_pass_both_ways(server: ServerProcess) -> None:
    with FunctionServer() as functions, client_of(server) as client:
        functions.register(server.url, "s/f")
        document = os.urandom(5_000_000)
        path = "/2016-08-15/services/s/functions/f/invocations"
        reply = client.post(path, content=document, headers={"Content-Type": "application/octet-stream"})
        assert reply.status_code == 200, reply.text
        [call] = functions.calls
        assert call.body == document


def test_bodies_that_are_too_large_are_refused(server: ServerProcess) -> None:
    with client_of(server) as client:
        for path in ("/", "/v1/flows"):
            reply = client.post(path, content=b"x" * (Limits().request_bytes_max + 1))
            assert reply.status_code == 400, path
            assert b"EntityTooLarge" in reply.content
            assert client.get("/healthz").status_code == 200


def test_headers_of_a_reply_may_hold_any_bytes(server: ServerProcess) -> None:
    body = b'{"a":1}'
    answer = b"HTTP/1.1 200 OK\r\nX-Author: J\xfcrgen\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_server(("127.0.0.1", 0)) as function, client_of(server) as client:
        function.settimeout(PATIENCE_SECONDS)
        url = f"http://127.0.0.1:{function.getsockname()[1]}/"
        client.put("/v1/functions/s/f", json={"url": url}).raise_for_status()
        start(client)
        connection, _ = function.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)
            row = client.get("/v1/flows/f/executions/e", params={"wait": PATIENCE_SECONDS}).json()
    assert (row["status"], row["output"]) == ("Succeeded", {"a": 1})


BROKEN = """
import sys
from flowserver.cli import main, two_processes
def fail(*_, **__):
    raise ImportError("no such library")
two_processes.Front = fail
sys.argv = ["flowserver", "serve", "--processes", "2", "--port", "0", "--database-url", sys.argv[1]]
main.app()
"""


def run_program(program: str, url: str) -> subprocess.CompletedProcess[str]:
    """Until its end, which must be a failure."""
    command = [sys.executable, "-c", program, url]
    ended = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert ended.returncode == 1
    return ended


def test_a_front_that_cannot_start_reports_the_reason(sqlite_url: str) -> None:
    output = run_program(BROKEN, sqlite_url).stderr
    assert "no such library" in output
    assert "the process that speaks HTTP has ended" in output


def test_threads_before_the_fork_are_refused(sqlite_url: str) -> None:
    thread = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    output = run_program(thread + BROKEN, sqlite_url).stderr
    assert output.startswith("flowserver: something here has started threads")


WITHOUT_SIGCHLD = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "flowserver", *sys.argv[1:]])
"""


def test_the_parent_process_may_ignore_its_children(sqlite_url: str) -> None:
    command = [sys.executable, "-c", WITHOUT_SIGCHLD, "serve", *TWO, "--port", "0", "--database-url", sqlite_url]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=clean_environment(), text=True, **output) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith("  Access"):
                server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0


def test_roles_hold_in_both_processes(server: ServerProcess, sqlite_url: str) -> None:
    """The front checks RPC's callers, the engine those of REST; the engine limits what RPC lists and settles."""
    made = {role: make_access_key("", 0, role=role, flows="order-") for role in ("viewer", "deployer")}
    with client_of(server) as client:
        for name in ("order-1", "other"):
            client.put(f"/v1/flows/{name}", json={"definition": CALL}).raise_for_status()
        database = Database(sqlite_url)
        with database.write() as connection:
            for each in made.values():
                insert_access_key(connection, each.key)
        database.close()
        for path in ("/v1/flows", "/?Action=ListFlows"):
            while client.get(path).status_code == 200:  # it has not noticed that there are keys
                pass

        def call(role: str, action: str, name: str) -> httpx.Response:
            parameters = {"Action": action, "Name": name, "Description": "new"}
            return client.post("/", data=parameters, headers={"Authorization": f"Bearer {made[role].token}"})

        assert [flow["Name"] for flow in call("viewer", "ListFlows", "").json()["Flows"]] == ["order-1"]
        refused = call("viewer", "UpdateFlow", "order-1")
        assert (refused.status_code, refused.json()["Code"]) == (403, "AccessDenied")
        assert "flows.write, which the roles deployer and admin have" in refused.json()["Message"]
        assert call("deployer", "UpdateFlow", "order-1").status_code == 200
        assert call("deployer", "UpdateFlow", "other").status_code == 403
        headers = {"Authorization": f"Bearer {made['viewer'].token}"}
        assert client.get("/v1/flows/other", headers=headers).status_code == 403
        shown = client.get("/v1/permissions", headers=headers).json()
        assert (shown["role"], shown["flows"]) == ("viewer", "order-")


def test_requests_that_the_front_answers_itself_are_counted(server: ServerProcess) -> None:
    with client_of(server) as client:
        client.post("/", params={"Action": "ListFlows"}).raise_for_status()
        client.get("/v1/flows").raise_for_status()
        text = client.get("/metrics").text
    assert 'flowserver_http_requests_total{api="RPC",route="ListFlows",status="200"} 1.0' in text
    assert 'flowserver_http_requests_total{api="REST",route="list_flows",status="200"} 1.0' in text
    assert 'flowserver_http_request_seconds_count{api="RPC",route="ListFlows"} 1.0' in text
