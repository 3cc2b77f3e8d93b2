"""`flowserver versions` and `aliases`: publish, divide the starts, start a version."""

import json

import pytest

from tests.cli.conftest import one_line

PASS = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p, outputMappings: [{target: v, source: old}]}\n"


@pytest.fixture
def flowserver(run, server, monkeypatch, tmp_path):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    monkeypatch.chdir(tmp_path)
    return run


def test_ten_percent_of_the_starts_then_all(flowserver, tmp_path):
    for text in (PASS, PASS.replace("old", "new")):
        (tmp_path / "order.yaml").write_text(text)
        flowserver("apply", "order.yaml")
        published = flowserver("versions", "publish", "order", "--description", "one more")
        assert published.exit_code == 0
    assert published.stdout == "published version 2 of order\n"
    again = flowserver("versions", "publish", "order", "--description", "one more")
    assert again.stdout == "unchanged: version 2 of order has this definition and description\n"
    assert flowserver("versions", "list", "order", "-o", "name").stdout.split() == ["2", "1"]
    assert flowserver("versions", "get", "order", "1").stdout == PASS
    differs = flowserver("versions", "diff", "order", "1", "2")
    assert differs.exit_code == 1
    assert differs.stdout.splitlines()[:2] == ["--- version 1", "+++ version 2"]
    assert "source: new" in differs.stdout
    assert flowserver("versions", "diff", "order", "2").exit_code == 0
    assert json.loads(flowserver("versions", "diff", "order", "1", "-o", "json").stdout)["differs"]
    created = flowserver("aliases", "create", "order", "prod", "--route", "1")
    assert created.stdout == "created prod: version 1 100 %\n"
    started = flowserver("start", "order", "--qualifier", "prod", "--wait", "-q", "-o", "json")
    document = json.loads(started.stdout)
    assert (document["version"], document["alias"], document["output"]) == (1, "prod", {"v": "old"})
    assert "1 (by prod)" in flowserver("executions", "describe", f"order/{document['name']}").stdout
    changed = flowserver("aliases", "update", "order", "prod", "--route", "1=90", "--route", "2=10")
    assert changed.stdout == "updated prod: version 1 90 %, version 2 10 %\n"
    assert flowserver("aliases", "update", "order", "prod", "--route", "2").exit_code == 0
    listed = flowserver("aliases", "list", "order").stdout
    assert "version 2 100 %" in listed
    assert json.loads(flowserver("start", "order", "--qualifier", "2", "-w", "-q").stdout) == {"v": "new"}
    assert flowserver("versions", "delete", "order", "1", "--yes").exit_code == 0
    assert flowserver("aliases", "delete", "order", "prod", "--yes").stdout == "deleted prod\n"
    assert flowserver("start", "order", "--qualifier", "prod").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["aliases", "create", "order", "x", "--route", "one"], 2, "--route is VERSION or VERSION=PERCENT"),
        (["versions", "publish", "none"], 3, "does not exist"),
        (["versions", "list", "none"], 3, "does not exist"),
        (["versions", "get", "none", "1"], 3, "does not exist"),
    ],
)
def test_errors(flowserver, arguments, exit_code, words):
    result = flowserver(*arguments)
    assert result.exit_code == exit_code
    assert words in one_line(result)
