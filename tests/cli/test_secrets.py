"""`flowserver secrets`: values from stdin or a file, which nothing shows."""

import json

import pytest

from flowserver.base.encryption import check_key
from tests.cli.conftest import one_line
from tests.support.server import ServerProcess


@pytest.fixture
def flowserver(run, sqlite_url, monkeypatch):
    key = run("secrets", "new-key").stdout.strip()
    check_key(key)
    with ServerProcess(sqlite_url, environment={"FLOWSERVER_SECRETS_KEY": key}) as server:
        monkeypatch.setenv("FLOWSERVER_URL", server.url)
        yield run


@pytest.mark.parametrize(("mode", "is_warned"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_key_file_that_others_can_read_is_warned_of(run, sqlite_url, tmp_path, mode, is_warned):
    file = tmp_path / "secrets.key"
    file.write_text(run("secrets", "new-key").stdout)
    file.chmod(mode)
    with ServerProcess(sqlite_url, "--secrets-key-file", str(file)) as server:
        pass
    warning = f"every user of this machine can read the keys in {file} (mode 0644); better: chmod 600 {file}"
    assert (warning in server.log) is is_warned


@pytest.mark.parametrize("command", ["validate", "prove", "test", "sim", "schema"])
def test_commands_that_only_read_definitions_open_no_key_file(run, tmp_path, monkeypatch, command):
    """The variable's path is relative to the folder of the server."""
    monkeypatch.setenv("FLOWSERVER_SECRETS_KEY_FILE", "secrets.key")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.yaml").write_text("version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n")
    (tmp_path / "f.flowtest.yaml").write_text("flow: f.yaml\ntests: [{name: t, expect: {status: Succeeded}}]\n")
    arguments = {"schema": ["flow"], "sim": ["f.flowtest.yaml", "--runs", "1"], "test": ["f.flowtest.yaml"]}
    done = run(command, *arguments.get(command, ["f.yaml"]))
    assert done.exit_code == 0, done.output
    assert run("doctor").exit_code == 2, "others need it"


def test_secrets_are_set_listed_and_deleted(flowserver, tmp_path):
    assert flowserver("secrets", "list").stderr == "There are no secrets.\n"
    assert flowserver("secrets", "set", "SHOP", stdin="hunter2\n").stdout == "set SHOP\n"
    (tmp_path / "value").write_text("hunter2\n")
    assert flowserver("secrets", "set", "OTHER", "--from-file", tmp_path / "value").exit_code == 0
    url = "http://127.0.0.1:9/charge?k=${secret:SHOP}"
    assert flowserver("functions", "put", "shop/charge", url).exit_code == 0
    unknown = flowserver("functions", "put", "shop/lost", "http://127.0.0.1:9/charge?k=${secret:LOST}")
    assert unknown.stderr.count("warning[unknown-secret]") == 1
    assert flowserver("functions", "delete", "shop/lost").exit_code == 0
    listed = flowserver("secrets", "list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["SECRET", "OTHER", "SHOP"]
    assert listed[2].endswith("function shop/charge")
    shown = flowserver("secrets", "list", "-o", "json").stdout
    assert [each["name"] for each in json.loads(shown)] == ["OTHER", "SHOP"]
    assert "hunter2" not in shown
    used = flowserver("secrets", "delete", "SHOP")
    assert (used.exit_code, "the function shop/charge refers to the secret SHOP" in one_line(used)) == (5, True)
    assert flowserver("secrets", "delete", "SHOP", "--force").stdout == "deleted SHOP\n"
    assert flowserver("secrets", "delete", "SHOP").exit_code == 3
    assert flowserver("secrets", "set", "EMPTY", stdin="\n").exit_code == 2
