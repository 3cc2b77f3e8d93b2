"""`flowserver audit list`: who did what on a server."""

import json

import pytest

from tests.cli.conftest import one_line

PASS = "version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n"


@pytest.fixture
def flowserver(run, server, monkeypatch):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    return run


def test_what_was_done_is_listed(flowserver, tmp_path):
    assert flowserver("audit", "list").stderr == "There are no such records.\n"
    (tmp_path / "order.yaml").write_text(PASS)
    flowserver("apply", str(tmp_path), "--yes")
    flowserver("flows", "delete", "order", "--yes")
    head, newest, *older = flowserver("audit", "list", "--object", "flows/order").stdout.splitlines()
    assert head.split() == ["TIME", "WHO", "FROM", "OPERATION", "OBJECT", "RESULT"]
    assert newest.split()[-6:] == ["-", "REST", "127.0.0.1", "flows.delete", "flows/order", "ok"]
    assert len(older) == 1
    (record,) = json.loads(flowserver("audit", "list", "--operation", "flows.delete", "-o", "json").stdout)
    assert (record["object"], record["result"]) == ("flows/order", "ok")
    assert flowserver("audit", "list", "--until", "1d").stderr == "There are no such records.\n"
    assert flowserver("audit", "list", "--since", "1d", "-o", "name").stdout.splitlines()[0] == record["id"]
    wrong = flowserver("audit", "list", "--since", "soon")
    assert (wrong.exit_code, "--since takes an age" in one_line(wrong)) == (2, True)
