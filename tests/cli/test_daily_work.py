"""A day's work from the command line: apply, start, list, describe, stop; outputs and exit codes."""

import json

import pytest

from tests.cli.conftest import one_line

GREET = (
    "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: greet, outputMappings: [{target: g, source: $input.n}]}\n"
)
BROKEN = "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: f, error: Broken, cause: printer offline}\n"
WAIT = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: w, duration: 3600}\n"


@pytest.fixture
def flowserver(run, server, monkeypatch):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    return run


@pytest.fixture
def folder(flowserver, tmp_path):
    """A folder of flows that the server has."""
    place = tmp_path / "flows"
    place.mkdir()
    for name, text in {"greet": GREET, "broken": BROKEN, "waits": WAIT}.items():
        (place / f"{name}.yaml").write_text(text)
    assert flowserver("apply", place).exit_code == 0
    return place


def test_apply_reports_its_changes(flowserver, folder):
    (folder / "greet.yaml").write_text(GREET.replace("target: g", "target: h"))
    (folder / "new-one.yaml").write_text(GREET)
    tried = flowserver("apply", folder, "--dry-run")
    assert tried.exit_code == 0
    lines = tried.stdout.splitlines()
    assert [line for line in lines if line.startswith("flow/")] == [
        "flow/broken unchanged", "flow/greet changed", "flow/new-one created", "flow/waits unchanged"
    ]  # fmt: skip
    assert any(line.startswith("-") and "target: g" in line for line in lines)
    assert any(line.startswith("+") and "target: h" in line for line in lines)
    assert flowserver("flows", "get", "new-one").exit_code == 3
    done = flowserver("apply", folder, "-o", "json")
    assert {each["name"]: each["change"] for each in json.loads(done.stdout)} == {
        "broken": "unchanged", "greet": "changed", "new-one": "created", "waits": "unchanged"
    }  # fmt: skip
    assert flowserver("flows", "get", "greet", "-o", "yaml").stdout == (folder / "greet.yaml").read_text()
    (folder / "new-one.yaml").unlink()
    refused = flowserver("apply", folder, "--prune")
    assert refused.exit_code == 2
    assert "new-one" in refused.stderr
    assert flowserver("flows", "delete", "nothing", "--yes", "-o", "json").exit_code == 3
    assert "flow/new-one deleted" in flowserver("apply", folder, "--prune", "--yes").stdout
    assert flowserver("flows", "list", "-o", "name").stdout.split() == ["broken", "greet", "waits"]


def test_one_invalid_file_prevents_all(flowserver, folder):
    (folder / "another.yaml").write_text(GREET)
    (folder / "wrong.yaml").write_text("version: v1\ntype: flow\nsteps: []\n")
    refused = flowserver("apply", folder)
    assert refused.exit_code == 1
    assert "wrong.yaml:3:" in refused.stderr
    assert flowserver("flows", "get", "another").exit_code == 3
    assert flowserver("apply", folder / "none.yaml").exit_code == 3


def test_functions_are_applied_without_showing_secrets(flowserver, tmp_path, monkeypatch):
    monkeypatch.setenv("CHARGE_TOKEN", "Bearer 1")
    file = tmp_path / "functions.yaml"
    entry = "{url: 'http://127.0.0.1:9000/c', headersFromEnv: {Authorization: CHARGE_TOKEN}}"
    file.write_text(f"functions: {{shop/charge: {entry}}}")
    assert flowserver("apply", file).stdout == "function/shop/charge created\n"
    assert flowserver("apply", file).stdout == "function/shop/charge unchanged\n"
    monkeypatch.setenv("CHARGE_TOKEN", "Bearer 2")
    changed = flowserver("apply", file)
    assert changed.stdout.startswith("function/shop/charge changed\n")
    assert "-  Authorization: (hidden, and another value)\n+  Authorization: (hidden)\n" in changed.stdout
    assert "Bearer" not in changed.stdout
    assert flowserver("apply", file, "--dry-run").stdout == "function/shop/charge unchanged\n"
    monkeypatch.delenv("CHARGE_TOKEN")
    assert one_line(flowserver("apply", file)).endswith("the variable CHARGE_TOKEN is not set")


def test_functions_that_a_program_hosts_are_left_to_it(flowserver, tmp_path):
    """One file serves both: `functions serve` hosts what has a handler, `apply` registers what has a URL."""
    file = tmp_path / "functions.yaml"
    file.write_text("functions: {own/a: a.py:h, own/b: {handler: b.py:h}, own/c: {url: 'http://127.0.0.1:9/'}}")
    applied = flowserver("apply", file)
    assert (applied.exit_code, applied.stdout) == (0, "function/own/c created\n")
    hosts = f"`flowserver functions serve {file}` hosts and registers what has one"
    assert applied.stderr == f"{file}: 2 functions have handlers; {hosts}\n"
    assert flowserver("functions", "get", "own/a").exit_code == 3
    file.write_text("functions: {own/a: a.py:h}")
    alone = flowserver("apply", file)
    assert (alone.exit_code, alone.stdout) == (0, "")
    assert alone.stderr == f"{file}: own/a has a handler; {hosts}\n"
    for wrong in ("{handler: a.py:h, url: 'http://127.0.0.1:9/'}", "{timeoutSeconds: 3}", "", "3"):
        file.write_text(f"functions: {{own/a: {wrong}}}")
        refused = flowserver("apply", file)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "own/a must have a `url`, where it is, or a `handler`, which is hosted; not both" in refused.stderr


@pytest.mark.usefixtures("folder")
def test_start_and_wait(flowserver, tmp_path):
    done = flowserver("start", "greet", "--input", '{"n": 1}', "--wait")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"g": 1})
    assert "greet" in done.stderr
    (tmp_path / "input.json").write_text('{"n": 2}')
    document = json.loads(flowserver("start", "greet", "-i", f"@{tmp_path}/input.json", "-w", "-o", "json").stdout)
    assert (document["status"], document["output"]) == ("Succeeded", {"g": 2})
    quiet = flowserver("-q", "start", "greet", "--input", "-", "--wait", stdin='{"n": 3}')
    assert (json.loads(quiet.stdout), quiet.stderr) == ({"g": 3}, "")
    (tmp_path / "input.json").write_text('{"n": 4}', "utf-8-sig")
    for given, stdin in (
        (f"@{tmp_path}/input.json", ""),
        ("-", '{"n": 4}'.encode("utf-8-sig")),
        ('\ufeff{"n": 4}', ""),
    ):
        done = flowserver("-q", "start", "greet", "--input", given, "--wait", stdin=stdin)
        assert json.loads(done.stdout) == {"g": 4}
    (tmp_path / "input.json").write_text('{"n": 4}', "utf-16")
    refused = flowserver("start", "greet", "--input", f"@{tmp_path}/input.json")
    assert f"{tmp_path}/input.json: encoded as UTF-16; write it as UTF-8" in refused.stderr
    named = flowserver("start", "greet", "--name", "mine", "-q")
    assert named.stdout == "greet/mine\n"
    assert flowserver("watch", "greet/mine").exit_code == 0
    again = flowserver("start", "greet", "--name", "mine")
    assert again.exit_code == 5
    assert again.stderr.endswith("; how it ended: flowserver watch greet/mine\n")
    flowserver("start", "waits", "--name", "mine")
    other = flowserver("start", "waits", "--name", "mine", "--input", '{"n": 1}')
    assert other.exit_code == 5
    assert other.stderr.endswith("; see how it goes on: flowserver watch waits/mine\n")


@pytest.mark.usefixtures("folder")
def test_a_failure_is_exit_code_1(flowserver):
    failed = flowserver("start", "broken", "--wait", "-q")
    assert failed.exit_code == 1
    assert one_line(failed).endswith("ended as Failed: Broken: printer offline")
    waited = flowserver("start", "waits", "--wait", "--timeout", "0s", "-o", "json")
    assert json.loads(waited.stdout)["status"] == "Running"
    waited = flowserver("start", "waits", "--wait", "--timeout", "0s")
    assert waited.exit_code == 1
    assert "still runs" in waited.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["start", "gret"], 3, "did you mean greet?"),
        (["start", "greet", "--input", "[1]"], 2, "--input must be a JSON object"),
        (["start", "greet", "--input", "@absent.json"], 3, "absent.json"),
        (["start", "greet", "--timeout", "1m"], 2, "--timeout is for --wait"),
        (["start", "greet", "--wait", "--timeout", "1 minute"], 2, "takes a duration"),
        (["executions", "describe", "greet"], 2, "an execution is written FLOW/NAME"),
        (["executions", "list", "--since", "yesterday"], 2, "--since takes an age"),
        (["executions", "history", "greet/none"], 3, "does not exist"),
        (["executions", "history", "greet/mind"], 3, "did you mean mine?"),
        (["executions", "history", "greet/mine", "--step", "gret"], 0, "No event of a step gret; did you mean greet?"),
        (["executions", "redrive", "greet/mine", "--from", "gret"], 3, "has no step gret; did you mean greet?"),
        (["start", "greet", "--qualifier", "prdo"], 3, "did you mean prod?"),
        (["aliases", "delete", "greet", "prdo", "--yes"], 3, "did you mean prod?"),
        (["functions", "get", "shop/chrage"], 3, "did you mean shop/charge?"),
        (["executions", "stop"], 2, "name executions"),
        (["flows", "list", "--token", "fls_1"], 2, "--token takes a file"),
        (["flows", "list", "--context", "none"], 3, "there is no context none"),
        (["flows", "list", "--server", "http://127.0.0.1:1"], 4, "cannot be reached"),
        (["flow", "list"], 2, "Did you mean 'flows'"),
        (["flows", "lst"], 2, "Did you mean 'list'"),
        (["stop", "greet/mine"], 2, "Did you mean 'executions stop'"),
        (["describe", "greet/mine"], 2, "Did you mean 'executions describe'"),
        (["list"], 2, "Did you mean 'executions list', 'flows list'"),
        (["history"], 2, "Did you mean 'executions history'"),
        (["deploy", "flows"], 2, "Did you mean 'apply'"),
        (["run", "greet"], 2, "Did you mean 'start'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors(flowserver, arguments, exit_code, words):
    flowserver("start", "greet", "--name", "mine", "--wait")
    flowserver("versions", "publish", "greet")
    flowserver("aliases", "create", "greet", "prod", "--route", "1")
    flowserver("functions", "put", "shop/charge", "http://127.0.0.1:9000/c")
    result = flowserver(*arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert words in result.stderr.splitlines()[-1]


@pytest.mark.usefixtures("folder")
def test_executions_listed_described_and_stopped(flowserver):
    """Names with letters that no hexadecimal has: those that the server makes begin with any."""
    flowserver("start", "broken", "--name", "p1", "--wait")
    path = flowserver("start", "waits", "--name", "w1").stdout.strip()
    listed = flowserver("executions", "list", "--status", "Failed", "--since", "1d", "--prefix", "p1")
    heading, row = listed.stdout.splitlines()
    assert heading.split() == ["EXECUTION", "STATUS", "VERSION", "STARTED", "TOOK", "FAILED", "STEP", "ERROR"]
    assert row[heading.index("FAILED STEP") :].split()[0] == "f"
    assert "broken/p1" in listed.stdout
    assert "Broken: printer offline" in listed.stdout
    assert [
        each["name"] for each in json.loads(flowserver("executions", "list", "--prefix", "w1", "-o", "json").stdout)
    ] == ["w1"]
    assert flowserver("-o", "name", "executions", "list", "--prefix", "w1").stdout == f"{path}\n"
    assert flowserver("executions", "-o", "json", "list", "--prefix", "w1", "-o", "name").stdout == f"{path}\n"
    assert flowserver("executions", "list", "--prefix", "none", "-o", "json").stdout == "[]\n"
    described = flowserver("executions", "describe", "broken/p1").stdout
    assert "printer offline" in described
    assert json.loads(flowserver("executions", "describe", path, "-o", "json").stdout)["status"] == "Running"
    history = flowserver("executions", "history", "broken/p1", "--step", "f", "--reverse", "-o", "json")
    numbers = [each["eventId"] for each in json.loads(history.stdout)]
    assert numbers == sorted(numbers, reverse=True)
    followed = flowserver("executions", "history", "broken/p1", "--follow", "-o", "json").stdout.splitlines()
    assert json.loads(followed[-1])["type"] == "ExecutionFailed"
    refused = flowserver("executions", "stop", "--flow", "waits", "--prefix", "w1")
    assert refused.exit_code == 2
    assert "Stop 1 running execution" in refused.stderr
    assert flowserver("executions", "stop", "--flow", "waits", "--prefix", "w1", "--yes").stdout == f"stopped {path}\n"
    assert flowserver("executions", "stop", path).exit_code == 5
    flowserver("start", "waits", "--name", "w2")
    several = flowserver("executions", "stop", path, "waits/none", "waits/w2")
    assert (several.exit_code, several.stdout) == (3, "stopped waits/w2\n")
    assert len(several.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("flows delete greet/schedules/tmp --yes", "'greet/schedules/tmp' is not a flow's name"),
        ("flows describe greet/aliases/prod", "'greet/aliases/prod' is not a flow's name"),
        ("flows get greet/versions/1", "'greet/versions/1' is not a flow's name"),
        ("start greet/x", "'greet/x' is not a flow's name"),
        ("versions publish greet/x", "'greet/x' is not a flow's name"),
        ("schedules list --flow greet/x", "'greet/x' is not a flow's name"),
        ("executions describe greet/a/steps", "'a/steps' is not an execution's name"),
        ("schedules delete greet/tmp/pause --yes", "'tmp/pause' is not a schedule's name"),
        ("aliases delete greet prod/x --yes", "'prod/x' is not an alias's name"),
        ("queues peek jobs/messages", "'jobs/messages' is not a queue's name"),
        ("topics publish news/messages hello", "'news/messages' is not a topic's name"),
    ],
)
def test_a_name_with_a_slash_acts_on_nothing_else(flowserver, folder, written, said):
    flowserver("schedules", "create", "greet/tmp", "--every", "1h")
    refused = flowserver(*written.split())
    assert (refused.exit_code, one_line(refused)) == (2, f"flowserver: {said}")
    assert flowserver("schedules", "get", "greet/tmp").exit_code == 0


def test_an_execution_becomes_a_test(flowserver, folder):
    assert flowserver("start", "broken", "--name", "recorded", "--input", '{"password": "p"}', "--wait").exit_code == 1
    recorded = flowserver("test", "record", "broken", "recorded")
    assert recorded.stderr == "hidden values, as they look like secrets: 1; the test may need others\n"
    (folder / "broken.flowtest.yaml").write_text(recorded.stdout)
    tested = flowserver("test", folder)
    assert (tested.exit_code, tested.stdout.splitlines()[1]) == (
        0,
        "  ✔ as recorded  0 calls, 0s of virtual time",
    )
    assert flowserver("apply", folder).stdout.count("unchanged") == 3  # it passes over tests
    assert flowserver("start", "waits", "--name", "recorded").exit_code == 0
    running = flowserver("executions", "record", "waits/recorded")
    assert (running.exit_code, one_line(running)) == (
        5,
        "flowserver: no test can repeat waits/recorded: it has not ended",
    )
    assert flowserver("executions", "stop", "waits/recorded").exit_code == 0
    assert flowserver("executions", "record", "broken/missing").exit_code == 3


def test_an_execution_is_recorded_by_either_spelling(flowserver, folder):
    assert flowserver("start", "greet", "--name", "spelt", "--wait").exit_code == 0
    recorded = {
        flowserver(*words.split()).stdout
        for words in ("test record greet spelt", "test record greet/spelt", "executions record greet/spelt")
    }
    assert len(recorded) == 1
    assert flowserver("test", "record", "greet", "a/b").exit_code == 2
    assert flowserver("test", "record", "greet").exit_code == 2


def test_a_folder_named_record_has_its_tests(flowserver, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "f.yaml").write_text("version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n")
    (tmp_path / "record" / "f.flowtest.yaml").write_text("flow: f.yaml\ntests: [{name: a}]\n")
    for folder in ("./record", "record/"):
        assert "  ✔ a" in flowserver("test", folder).stdout
    assert "Missing argument 'FLOW'" in flowserver("test", "record").stderr
