"""`apply --strict`: the server refuses, in the request that writes the definition."""

import pytest

from flowserver.client import Client

CALL = """\
version: v1
type: flow
steps:
  - {type: task, name: t, resourceArn: 'acs:fc:::services/strict/functions/charge'}
"""
PARENT = """\
version: v1
type: flow
steps:
  - {type: task, name: t, resourceArn: 'acs:fnf:::flow/strict-child', pattern: sync}
"""
PASS = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n"
UNREACHABLE = "version: v1\ntype: flow\nsteps:\n  - {type: succeed, name: s}\n  - {type: pass, name: never}\n"


@pytest.fixture
def apply(run, server, tmp_path):
    def apply_files(files, *options):
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        return run("apply", tmp_path, *options, "--server", server.url)

    return apply_files


def test_one_definition_is_checked_by_the_request_that_writes_it(apply, run, server, monkeypatch):
    def fail(*_):
        raise AssertionError("it was checked beforehand")

    monkeypatch.setattr(Client, "validate", fail)
    refused = apply({"strict-call": CALL}, "--strict")
    assert refused.exit_code == 1
    assert "strict-call.yaml:4:5: warning[unknown-function]" in refused.stderr
    assert "the definition of strict-call is refused" in refused.stderr
    assert run("flows", "get", "strict-call", "--server", server.url).exit_code == 3
    applied = apply({"strict-call": CALL})
    assert (applied.exit_code, applied.stdout) == (0, "flow/strict-call created\n")
    assert "warning[unknown-function]" in applied.stderr


def test_what_the_same_command_creates_is_not_missing(apply):
    functions = "functions:\n  strict/charge: {url: 'http://127.0.0.1:9/'}\n"
    files = {"a-call": CALL, "a-parent": PARENT, "strict-child": PASS, "functions": functions}
    applied = apply(files, "--strict")
    assert (applied.exit_code, applied.stderr) == (0, "")
    assert applied.stdout.splitlines() == [
        "function/strict/charge created", "flow/a-call created", "flow/strict-child created", "flow/a-parent created",
    ]  # fmt: skip
    assert apply({}, "--strict").stdout.count("unchanged") == 4


def test_a_warning_in_one_of_several_files_prevents_all(apply, run, server):
    refused = apply({"strict-good": PASS, "strict-odd": UNREACHABLE}, "--strict")
    assert refused.exit_code == 1
    assert "1 of 2 definitions are refused; nothing is applied" in refused.stderr
    assert run("flows", "get", "strict-good", "--server", server.url).exit_code == 3


def test_a_flow_that_stays_missing_is_refused(apply):
    refused = apply({"lonely": PARENT.replace("strict-child", "no-such-flow"), "strict-other": PASS}, "--strict")
    assert refused.exit_code == 1
    assert "warning[unknown-flow]" in refused.stderr
    assert "the definition of lonely is refused" in refused.stderr
