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
    assert "1 of 2 definitions is refused; nothing is applied" in refused.stderr
    assert run("flows", "get", "strict-good", "--server", server.url).exit_code == 3


def test_a_flow_that_stays_missing_is_refused(apply):
    refused = apply({"lonely": PARENT.replace("strict-child", "no-such-flow"), "strict-other": PASS}, "--strict")
    assert refused.exit_code == 1
    assert "warning[unknown-flow]" in refused.stderr
    assert "1 of 2 definitions is refused; nothing is applied" in refused.stderr


def test_what_has_not_changed_is_refused_too(apply):
    assert apply({"kept-call": CALL.replace("charge", "chrage")}).exit_code == 0
    refused = apply({}, "--strict")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "kept-call.yaml:4:5: warning[unknown-function]" in refused.stderr
    assert apply({}).stderr == ""


def test_a_dry_run_finds_what_the_real_run_finds(apply, run, server):
    files = {"dry-call": CALL.replace("charge", "shiping"), "dry-parent": PARENT.replace("strict-child", "dry-child")}
    tried = apply(files | {"dry-child": PASS}, "--dry-run")
    assert tried.exit_code == 0
    assert tried.stderr.count("warning[") == 1  # the missing flow is one of the files
    assert "dry-call.yaml:4:5: warning[unknown-function]" in tried.stderr
    tried, refused = (apply({}, "--strict", *options) for options in (["--dry-run"], []))
    assert (tried.exit_code, tried.stdout, tried.stderr) == (refused.exit_code, refused.stdout, refused.stderr)
    assert refused.exit_code == 1
    assert run("flows", "get", "dry-child", "--server", server.url).exit_code == 3


def test_a_qualified_function_of_the_same_folder_is_not_missing(apply):
    functions = "functions:\n  qualified.prod/charge: {url: 'http://127.0.0.1:9/'}\n"
    call = CALL.replace("services/strict/", "services/qualified.prod/")
    assert apply({"qualified-call": call, "functions": functions}, "--strict", "--dry-run").stderr.count("warning") == 0
    assert apply({}, "--strict").exit_code == 0


def test_flows_that_call_one_another_are_no_warning(apply):
    names = ("mutual-a", "mutual-b")
    ends = "  - {type: choice, name: c, choices: [{condition: $.done == true, goto: e}], default: {goto: t}}\n"
    some = PARENT.replace("steps:\n", f"steps:\n{ends}") + "  - {type: succeed, name: e}\n"
    files = {name: some.replace("strict-child", other) for name, other in zip(names, reversed(names), strict=True)}
    schedules = "schedules: {mutual-a/often: {cronExpression: '@every 5m'}}"
    applied = apply(files | {"schedules": schedules}, "--strict")
    assert (applied.exit_code, applied.stdout.count("created")) == (0, 3)


def test_a_sub_flow_of_the_same_folder_is_no_warning_of_the_dry_run_nor_of_the_real_one(apply):
    files = {"early-parent": PARENT.replace("strict-child", "late-child"), "late-child": PASS}
    for options in (["--dry-run"], []):
        applied = apply(files, *options)
        assert (applied.exit_code, "warning" in applied.stderr) == (0, False)


@pytest.mark.parametrize("others", [{}, {"hosted-other": PASS}])
def test_a_function_that_is_hosted_from_the_same_files_is_not_missing(apply, others):
    """The program that hosts it registers it: one definition is checked as it is written, several before."""
    functions = "functions: {hosted/charge: charge.py:handler, hosted.prod/ship: {handler: 'ship.py:handler'}}"
    call = CALL.replace("services/strict/", "services/hosted/")
    ship = "  - {type: task, name: s, resourceArn: 'acs:fc:::services/hosted.prod/functions/ship'}\n"
    files = {f"hosted-call-{len(others)}": call + ship, "functions": functions, **others}
    for options in (["--dry-run"], ["--strict", "--dry-run"], ["--strict"], ["--strict"]):
        applied = apply(files, *options)
        assert (applied.exit_code, "warning" in applied.stderr) == (0, False)
    refused = apply({"hosted-call-2": call.replace("charge", "chrage")}, "--strict")
    assert (refused.exit_code, "warning[unknown-function]" in refused.stderr) == (1, True)


def test_the_nearest_name_of_the_files_and_the_server_is_suggested(apply, run, server):
    run("functions", "put", "hinted/charge", "http://127.0.0.1:9/", "--server", server.url)
    run("functions", "put", "hinted/refund", "http://127.0.0.1:9/", "--server", server.url)
    calls = {name: CALL.replace("strict/functions/charge", f"hinted/functions/{name}") for name in ("chrage", "other")}
    files = {f"hint-{name}": text for name, text in calls.items()}
    files |= {"hint-child": PASS, "hint-parent": PARENT.replace("strict-child", "hint-chidl")}
    files |= {"hint-twin": PARENT.replace("strict-child", "hint-twins")}
    said = apply(files).stderr.splitlines()
    by_flow = {flow: next(line for line in said if f"/{flow}.yaml:" in line) for flow in files if flow != "hint-child"}
    assert by_flow["hint-chrage"].endswith("(did you mean `hinted/charge`?)")
    assert by_flow["hint-parent"].endswith("(did you mean `hint-child`?)")
    assert "did you mean" not in by_flow["hint-other"] + by_flow["hint-twin"]


def test_flows_that_start_one_another_are_found_before_they_are_written(apply):
    start = PARENT.replace(", pattern: sync", "")
    files = {name: start.replace("strict-child", other) for name, other in (("ping", "pong"), ("pong", "ping"))}
    message = "warning[starts-itself]: every way through `ping` starts itself again: `ping` → `pong` → `ping`"
    tried, refused, applied = apply(files, "--dry-run"), apply(files, "--strict"), apply(files)
    assert [tried.exit_code, refused.exit_code, applied.exit_code] == [0, 1, 0]
    assert all(result.stderr.count(message) == 1 for result in (tried, refused, applied))
