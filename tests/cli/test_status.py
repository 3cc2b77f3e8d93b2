"""`flowserver status`: what it shows of a server, and to a key that may see a part of it only."""

import json

import pytest

from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A server, and the database in which its keys are made."""
    url = f"sqlite:///{tmp_path_factory.mktemp('server')}/flowserver.db"
    with ServerProcess(url) as running:
        yield running, url


def test_it_shows_space_and_that_new_work_is_accepted(run, closed, monkeypatch):
    server, url = closed
    monkeypatch.setenv(
        "FLOWSERVER_TOKEN", json.loads(run("keys", "create", "--database-url", url, "-o", "json").stdout)["bearerToken"]
    )
    shown = run("status", "--server", server.url)
    assert shown.exit_code == 0, shown.stderr
    rows = dict(line.split(":", 1) for line in shown.stdout.splitlines())
    assert rows["new work"].strip() == "accepted"
    assert rows["free space"].strip().endswith("are kept as a reserve")
    assert rows["data"].strip().endswith("MiB")
    found = json.loads(run("status", "-o", "json", "--server", server.url).stdout)
    assert found["freeDiskBytes"] > found["diskReserveBytes"] > 0


@pytest.mark.parametrize(
    ("options", "seen", "reasons"),
    [
        (("--role", "starter"), set(), ("a key with the role starter may not read the overview",)),
        (("--role", "worker"), {"waitingTasks"}, ("a key with the role worker may not read the overview",)),
        (("--flows", "order-"), {"waitingTasks", "failedInOneDay"}, ("names begin with order- alone",)),
    ],
)
def test_a_key_sees_what_it_may(run, closed, monkeypatch, options, seen, reasons):
    server, url = closed
    monkeypatch.setenv(
        "FLOWSERVER_TOKEN",
        json.loads(run("keys", "create", "--database-url", url, "-o", "json", *options).stdout)["bearerToken"],
    )
    shown = run("status", "-o", "json", "--server", server.url)
    assert shown.exit_code == 0, shown.stderr
    assert json.loads(shown.stdout).keys() == {"server", "ready", "newWorkRefused", "deletionsPaused"} | seen
    assert all(reason in shown.stderr for reason in reasons)


def test_an_unknown_key_is_refused(run, closed, monkeypatch):
    server, url = closed
    run("keys", "create", "--database-url", url)
    monkeypatch.setenv("FLOWSERVER_TOKEN", "fls_wrong")
    refused = run("status", "--server", server.url)
    assert refused.exit_code == 4
    assert "the bearer token is unknown" in refused.stderr
