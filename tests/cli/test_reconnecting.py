"""`start --wait`, `watch` and `history --follow` while the server is away.

It is killed when an event has come, and started in a pause.
"""

import pytest

from flowserver.cli.remote import executions, following, reconnecting
from flowserver.cli.remote.event_lines import shown_event
from flowserver.cli.remote.step_states import Progress
from flowserver.client import Client
from tests.support.server import ServerProcess

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
