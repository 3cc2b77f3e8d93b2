"""`start --wait`, `watch` and `history --follow` while the server is away.

It is killed when an event has come, and started in a pause.
"""

import json
from http.server import BaseHTTPRequestHandler
from threading import Thread

import pytest

from flowserver.cli.remote import executions, following, reconnecting
from flowserver.cli.remote.event_lines import shown_event
from flowserver.cli.remote.step_states import Progress
from flowserver.client import Client
from tests.support.server import ServerProcess
from tests.support.threading_server import ThreadingServer

WAIT = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n  - {type: wait, name: w, duration: 3600}\n"


class Restarted:
    """A server that is killed at the first event of the step `w`."""

    def __init__(self, monkeypatch, database_url):
        self.servers = [ServerProcess(database_url)]
        self._url = database_url
        self.pauses = 0
        take = Progress.add

        def add(progress, event):
            yield from take(progress, event)
            if event.step_name == "w" and event.type == "StepEntered":
                self.servers[0].kill()

        def shown(event, now):
            if event.step_name == "w" and event.type == "StepEntered":
                self.servers[0].kill()
            return shown_event(event, now)

        monkeypatch.setattr(Progress, "add", add)
        monkeypatch.setattr(executions, "shown_event", shown)
        monkeypatch.setattr(reconnecting, "pause", self._pause)
        monkeypatch.setenv("FLOWSERVER_URL", self.servers[0].url)
        with Client(self.servers[0].url) as client:
            client.put_flow("long", WAIT)

    def _pause(self, seconds):
        """Start it again in the second pause, and stop the execution, so that the command ends."""
        self.pauses += 1
        if self.pauses == 2:
            self.servers.append(ServerProcess(self._url, port=self.servers[0].port))
            with Client(self.servers[1].url) as client:
                client.stop("long", "e", error="Enough")


@pytest.fixture
def restarted(monkeypatch, new_url):
    server = Restarted(monkeypatch, new_url)
    yield server
    for each in server.servers:
        each.kill()


@pytest.mark.parametrize("options", [(), ("--timeout", "1h")])
def test_goes_on_after_a_restart(run, restarted, options):
    ended = run("start", "long", "--name", "e", "--wait", *options)
    assert ended.exit_code == 1
    assert restarted.pauses == 2
    lines = ended.stderr.splitlines()
    assert lines[0] == "long/e runs. Come back: flowserver watch long/e"
    assert lines.count("Lost the server, trying again.") == lines.count("The server is back.") == 1
    assert sum(line.startswith("▸ p") for line in lines) == sum(line.startswith("▸ w") for line in lines) == 1
    assert lines[-1] == "flowserver: long/e ended as Stopped: Enough"


def test_gives_up_in_the_end(run, restarted, monkeypatch):
    monkeypatch.setattr(following, "OUTAGE_SECONDS", 0.0)
    ended = run("start", "long", "--name", "e", "--wait")
    assert (ended.exit_code, restarted.pauses) == (4, 0)
    assert "cannot be reached" in ended.stderr.splitlines()[-1]
    assert ended.stderr.endswith(". long/e may still run. Come back: flowserver watch long/e\n")


def test_a_followed_history_goes_on_after_a_restart(run, restarted):
    assert run("start", "long", "--name", "e").exit_code == 0
    followed = run("executions", "history", "long/e", "--follow")
    assert (followed.exit_code, restarted.pauses) == (0, 2)
    assert followed.stderr.splitlines() == ["Lost the server, trying again.", "The server is back."]
    lines = [line.split() for line in followed.stdout.splitlines()]
    assert [int(line[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert "ExecutionStopped" in lines[-1]


def test_a_followed_history_gives_up_in_the_end(run, restarted, monkeypatch):
    monkeypatch.setattr(executions, "OUTAGE_SECONDS", 0.0)
    assert run("start", "long", "--name", "e").exit_code == 0
    followed = run("executions", "history", "long/e", "--follow")
    assert (followed.exit_code, restarted.pauses) == (4, 0)
    assert followed.stderr.endswith("Come back: flowserver executions history long/e --follow\n")


LINE_ENDS = "\x0b\x0c\r\n\x1c\x1d\x1e\x85\u2028\u2029"


def test_documents_may_hold_characters_that_end_lines_elsewhere(run, monkeypatch, server):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    with Client(server.url) as client:
        client.put_flow("lines", "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n")
    started = run("start", "lines", "--name", "e", "--input", json.dumps({"text": LINE_ENDS}), "--wait")
    assert (started.exit_code, "Lost the server" in started.stderr) == (0, False)
    assert run("watch", "lines/e").exit_code == 0
    first, *_ = run("executions", "history", "lines/e", "--follow", "-o", "json").stdout.splitlines()
    assert json.loads(first)["detail"]["input"] == {"text": LINE_ENDS}


class Garbled(BaseHTTPRequestHandler):
    """A server whose second event cannot be read."""

    def do_GET(self):
        document = {"flowName": "f", "name": "e", "status": "Running", "startedTime": "2026-01-02T03:04:05Z"}
        content = json.dumps(document).encode()
        if self.path.endswith("/stream"):
            event = b'{"eventId": 1, "type": "ExecutionStarted", "time": "2026-01-02T03:04:05Z"}'
            content = b"data: %b\n\n: ping\n\ndata: {\n\n" % event
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("command", [("watch", "f/e"), ("executions", "history", "f/e", "--follow")])
def test_an_event_that_cannot_be_read_is_no_outage(run, monkeypatch, command):
    monkeypatch.setattr("time.sleep", lambda _: None)
    with ThreadingServer(Garbled) as garbled:
        Thread(target=garbled.serve_forever, args=(0.05,), daemon=True).start()
        ended = run(*command, "--server", garbled.url)
        garbled.shutdown()
    assert ended.exit_code == 4, ended.stderr
    assert "the event after event 1 cannot be read: " in ended.stderr
