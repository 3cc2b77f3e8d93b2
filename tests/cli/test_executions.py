"""`flowserver executions`: a parked execution is restarted, or the reason is reported."""

import httpx
import pytest
from sqlalchemy import update

from flowserver.client import Client
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from tests.cli.conftest import one_line
from tests.support.server import ServerProcess

WAIT = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: w, duration: 3600}\n"


@pytest.fixture
def restart(run, server):
    return lambda *names: run("executions", "restart", *names, "--server", server.url)


@pytest.fixture
def started(tmp_path):
    """A server with an execution `f/e`, and a function that changes its row."""
    url = f"sqlite:///{tmp_path}/flows.db"
    with ServerProcess(url) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        client.put("/v1/flows/f", json={"definition": WAIT}).raise_for_status()
        client.post("/v1/flows/f/executions", json={"name": "e"}).raise_for_status()

        def change(**values):
            database = Database(url)
            with database.write() as connection:
                connection.execute(update(executions).values(**values))
            database.close()

        yield server, change


def test_restarted_or_parked_again(run, started):
    server, change = started
    arguments = ("executions", "restart", "f/e", "--server", server.url)
    refused = run(*arguments)
    assert refused.exit_code == 5
    assert one_line(refused) == "flowserver: execution e of flow f is not parked (ExecutionNotParked)"
    change(parked_error="a bug")
    redriven = run("executions", "redrive", "f/e", "--server", server.url)
    assert redriven.exit_code == 5
    assert one_line(redriven).endswith("; it is parked: flowserver executions restart f/e")
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (0, "restarted f/e\n")
    change(parked_error="a bug", definition_id="gone")
    again = run(*arguments)
    assert again.exit_code == 1
    assert one_line(again).startswith("flowserver: f/e is parked again: DefinitionUnusable: definition gone is gone")
    assert run("executions", "stop", "f/e", "--server", server.url).exit_code == 0
    assert one_line(run(*arguments)).endswith("; redrive it: flowserver executions redrive f/e")


def test_a_parked_execution_is_watched_aloud(run, started, monkeypatch):
    """At once if it is parked already, and when the server is silent because it parks it; then that it goes on."""
    server, change = started
    change(parked_error="a bug")
    read = Client.events

    def events(client, flow, name, *, after, on_silence, **more):
        """The server sends nothing but comments, and the reason changes; then the execution is stopped."""
        for reason in ("a bug", None, None, "another bug"):
            change(parked_error=reason)
            on_silence()
        client.stop(flow, name)
        yield from read(client, flow, name, after=after, **more)

    monkeypatch.setattr(Client, "events", events)
    watched = run("watch", "f/e", "--server", server.url)
    lines = watched.stderr.splitlines()
    way_on = "Once that is repaired: flowserver executions restart f/e"
    assert lines[:7] == [
        "The server has parked it: a bug", way_on, "This command waits on. Come back: flowserver watch f/e",
        "It was restarted.",
        "The server has parked it: another bug", way_on, "This command waits on. Come back: flowserver watch f/e",
    ]  # fmt: skip
    assert lines[-1] == "flowserver: f/e ended as Stopped"


def test_executions_that_do_not_exist(restart):
    result = restart("none/e")
    assert result.exit_code == 3
    assert one_line(result) == "flowserver: flow none does not exist (FlowNotExists)"
