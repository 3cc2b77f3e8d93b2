"""`flowserver context`: named servers, whose tokens only the user can read."""

import json
import stat

import pytest

from tests.cli.conftest import one_line


@pytest.fixture
def file(tmp_path):
    return tmp_path / "configuration" / "flowserver" / "contexts.json"


def test_set_used_and_deleted(run, server, file, tmp_path):
    assert run("context", "list").stderr.startswith("There are no contexts")
    (tmp_path / "token").write_text("fls_secret\n")
    assert run("context", "set", "here", "--server", server.url, "--token", f"@{tmp_path}/token").stdout == "set here\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("flows", "list", "-o", "json").exit_code == 0  # the first context is in use
    run("context", "set", "there", "--server", "http://127.0.0.1:1")
    assert run("flows", "list", "--context", "there").exit_code == 4
    assert run("context", "use", "there").exit_code == 0
    assert run("flows", "list").exit_code == 4
    assert run("flows", "list", "--server", server.url).exit_code == 0
    listed = run("context", "list")
    assert "fls_secret" not in listed.stdout
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [["here", server.url], ["*", "there"]]
    assert {each["name"]: each["hasToken"] for each in json.loads(run("context", "list", "-o", "json").stdout)} == {
        "here": True, "there": False
    }  # fmt: skip
    assert run("context", "delete", "there").exit_code == 0
    assert run("context", "list", "-o", "name").stdout == "here\n"


def test_one_field_of_a_context_is_changed(run, file):
    run("context", "set", "prod", "--server", "http://127.0.0.1:1")
    run("context", "set", "prod", "--ca-file", "ca.pem")
    (stored,) = json.loads(file.read_text())["contexts"].values()
    assert stored["server"] == "http://127.0.0.1:1"
    assert stored["ca_file"].endswith("/ca.pem")


def test_a_context_by_variable(run, server, monkeypatch):
    run("context", "set", "first", "--server", "http://127.0.0.1:1")
    run("context", "set", "second", "--server", server.url)
    monkeypatch.setenv("FLOWSERVER_CONTEXT", "second")
    assert run("flows", "list", "-o", "json").exit_code == 0


def test_the_context_option_overrides_the_variables(run, server, monkeypatch):
    run("context", "set", "here", "--server", server.url)
    run("context", "set", "there", "--server", "http://127.0.0.1:1")
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    assert run("flows", "list", "-o", "json").exit_code == 0
    assert run("flows", "list", "--context", "there").exit_code == 4
    used = run("context", "use", "there")
    assert "FLOWSERVER_URL is set and goes before it" in used.stderr
    monkeypatch.setenv("FLOWSERVER_URL", "http://127.0.0.1:1")
    assert run("flows", "list", "--context", "here", "-o", "json").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["set", "x"], 2, "--server must be a URL"),
        (["set", "x", "--server", "nonsense"], 2, "--server must be a URL"),
        (["set", "a/b", "--server", "http://h"], 2, "the name of a context"),
        (["set", "x", "--server", "http://h", "--token", "typed"], 2, "--token takes a file"),
        (["use", "none"], 3, "there is no context none"),
        (["delete", "none"], 3, "there is no context none: flowserver context list"),
        (["use", "prdo"], 3, "there is no context prdo; did you mean prod?"),
    ],
)
def test_errors(run, arguments, exit_code, words):
    run("context", "set", "prod", "--server", "http://127.0.0.1:1")
    result = run("context", *arguments)
    assert result.exit_code == exit_code
    assert words in one_line(result)


def test_a_file_that_is_not_a_contexts_file(run, file):
    file.parent.mkdir(parents=True)
    file.write_text("[]")
    assert one_line(run("flows", "list")).endswith("contexts.json does not hold contexts; delete it")
