"""`flowserver executions redrive`: named executions, executions that match a filter, and dry runs."""

import json
import os
import re
from functools import partialmethod
from itertools import islice

import pytest
from rich.console import Console

from flowserver.cli.remote import following
from flowserver.cli.remote.live_steps import Drawing
from flowserver.cli.remote.redrive_outcomes import about_redrives, question_of
from flowserver.cli.remote.step_lines import shown_notes
from flowserver.cli.remote.step_states import Progress
from flowserver.client import Client
from flowserver.client.results import Event, Execution

BROKEN = """\
version: v1
type: flow
steps:
  - {type: pass, name: reserve}
  - {type: fail, name: load, error: LoadError, cause: no column}
"""
INSTANT = "2026-01-02T03:04:05Z"
WHOLE = BROKEN.replace("{type: fail, name: load, error: LoadError, cause: no column}", "{type: pass, name: load}")


@pytest.fixture
def flowserver(run, server, monkeypatch, tmp_path):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture
def failed(flowserver, tmp_path, request):
    """Executions that have failed; the flow has the name of the test."""
    flow = request.node.name
    (tmp_path / f"{flow}.yaml").write_text(BROKEN)
    assert flowserver("apply", f"{flow}.yaml").exit_code == 0
    paths = [f"{flow}/e{number}" for number in range(3)]
    for path in paths:
        assert flowserver("start", flow, "--name", path.partition("/")[2], "--wait", "-q").exit_code == 1
    return flow, paths


def test_a_dry_run_of_a_redrive(flowserver, failed):
    _, paths = failed
    tried = flowserver("executions", "redrive", paths[0], "--dry-run")
    assert (tried.exit_code, tried.stdout) == (
        0,
        f"{paths[0]}\n  Would run again: 1 failed (load).\n  Kept: reserve.\n",
    )
    (document,) = json.loads(flowserver("executions", "redrive", paths[0], "--dry-run", "-o", "json").stdout)
    assert (document["execution"], document["redrivable"]) == (paths[0], True)
    tried = flowserver("executions", "redrive", paths[0], "--from", "reserve", "--dry-run").stdout
    assert tried == f"{paths[0]}\n  Would run again: reserve and what comes after it: load.\n  Kept: nothing.\n"
    impossible = ("executions", "redrive", paths[0], "--from", "none", "--definition", "current")
    assert flowserver(*impossible, "--dry-run").exit_code == flowserver(*impossible).exit_code == 5


@pytest.mark.parametrize(
    ("definition", "where"), [("same", "{path}"), ("current", "the current definition of {flow}"), ("1", "{version}")]
)
def test_a_misspelt_step(flowserver, tmp_path, definition, where):
    """The step is looked for in the definition that the execution would continue with."""
    (tmp_path / "typo.yaml").write_text(BROKEN)
    flowserver("apply", "typo.yaml")
    flowserver("start", "typo", "--name", "t", "--wait")
    (tmp_path / "typo.yaml").write_text(WHOLE.replace("reserve", "unload"))
    flowserver("apply", "typo.yaml")
    flowserver("versions", "publish", "typo")
    names = {"path": "typo/t", "flow": "typo", "version": "version 1 of typo"}
    for step, meant in (("laod", "load"), ("reserv", "reserve") if definition == "same" else ("unlaod", "unload")):
        refused = flowserver("executions", "redrive", "typo/t", "--definition", definition, "--from", step)
        said = f"flowserver: {where.format(**names)} has no step {step}; did you mean {meant}?\n"
        assert (refused.exit_code, refused.stderr) == (3, said)


def test_with_the_corrected_definition(flowserver, failed, tmp_path):
    flow, paths = failed
    (tmp_path / f"{flow}.yaml").write_text(WHOLE)
    assert flowserver("apply", f"{flow}.yaml").exit_code == 0
    done = flowserver("executions", "redrive", paths[0], "--definition", "current")
    assert (done.exit_code, done.stdout) == (0, f"redriven {paths[0]}\n")
    assert flowserver("watch", paths[0], "-q").exit_code == 0
    assert flowserver("executions", "redrive", paths[0]).exit_code == 5
    refused = flowserver("executions", "redrive", "--flow", flow, "--error", "LoadError", "--definition", "current")
    assert refused.exit_code == 2
    assert "Redrive 2 executions?" in refused.stderr
    arguments = ("executions", "redrive", "--flow", flow, "--error", "LoadError", "--definition", "current", "--yes")
    assert sorted(flowserver(*arguments, "-o", "name").stdout.split()) == paths[1:]
    assert flowserver(*arguments).stderr == "No execution matches.\n"
    for too_few in ([], ["--status", "failed"]):
        refused = flowserver("executions", "redrive", *too_few)
        assert refused.exit_code == 2
        assert "--error, --waiting-redrive, --flow, --since, --until or --prefix" in refused.stderr
    assert flowserver("executions", "redrive", paths[0], "--flow", flow).exit_code == 2


def test_those_that_match_are_redriven_by_the_server_some_with_each_request(flowserver, failed, monkeypatch):
    """Not one by one; what has been done so far is noted, and what the server refuses is said in the end."""
    flow, paths = failed
    monkeypatch.delattr(Client, "redrive")
    monkeypatch.setattr(Client, "redrive_many", partialmethod(Client.redrive_many, limit=2))
    arguments = ("executions", "redrive", "--flow", flow, "--prefix", "e", "--yes")
    done = flowserver(*arguments)
    assert (done.exit_code, sorted(done.stdout.splitlines())) == (0, [f"redriven {path}" for path in paths])
    assert done.stderr == "2 of 3 redriven\n3 redriven, 0 refused.\n"
    for path in paths:
        assert flowserver("watch", path, "-q").exit_code == 1
    documents = json.loads(flowserver(*arguments, "-o", "json").stdout)
    assert documents == [{"name": path, "change": "redriven"} for path in reversed(paths)]
    for path in paths:
        assert flowserver("watch", path, "-q").exit_code == 1
    refused = flowserver(*arguments, "--from", "none", "--definition", "current")
    assert (refused.exit_code, refused.stdout) == (5, "")
    assert refused.stderr.count("cannot be redriven: ") == 3
    assert "0 redriven, 3 refused.\n" in refused.stderr


def test_a_dry_run_of_many_says_how_many(flowserver, failed):
    flow, _ = failed
    many = ("executions", "redrive", "--flow", flow, "--prefix", "e", "--dry-run")
    tried = flowserver(*many)
    assert (tried.exit_code, tried.stderr) == (0, "3 would be redriven, 0 refused.\n")
    refused = flowserver(*many, "--from", "none", "--definition", "current")
    assert (refused.exit_code, refused.stderr) == (5, "0 would be redriven, 3 refused.\n")


def test_sub_flows_whose_parents_have_taken_their_ends_are_left_out(flowserver, tmp_path):
    """By a filter and among several names: they cannot be redriven, and their parents can."""
    (tmp_path / "leaf.yaml").write_text(BROKEN)
    step = "{type: task, name: sub, resourceArn: 'acs:fnf:::flow/leaf', pattern: sync}"
    (tmp_path / "stem.yaml").write_text(f"version: v1\ntype: flow\nsteps: [{step}]\n")
    assert flowserver("apply", "leaf.yaml", "stem.yaml").exit_code == 0
    for name in ("p1", "p2"):
        assert flowserver("start", "stem", "--name", name, "--wait", "-q").exit_code == 1
    children = flowserver("executions", "list", "--flow", "leaf", "-o", "name").stdout.split()
    left_out = "2 sub-flow executions were left out: their parents have taken their ends; redrive the parents: stem/p"
    for choice in (["--flow", "leaf", "--status", "failed"], children):
        for more in ([], ["--dry-run"]):
            done = flowserver("executions", "redrive", *choice, "--yes", *more)
            assert (done.exit_code, done.stdout) == (0, "")
            assert " 0 refused.\n" in done.stderr
            assert left_out in done.stderr
    done = flowserver("executions", "redrive", "stem/p1", "stem/p2", *children)
    assert (done.exit_code, done.stdout) == (0, "redriven stem/p1\nredriven stem/p2\n")
    assert done.stderr.splitlines() == ["2 redriven, 0 refused.", left_out.partition(";")[0] + "."]
    alone = flowserver("executions", "redrive", children[0])
    assert alone.exit_code == 5
    assert "it has reported its end to stem/p" in alone.stderr


def test_the_question_says_what_is_redriven():
    def execution(flow, error):
        return Execution(flow, "e", "Failed", INSTANT, error=error)

    found = [*[execution("order", "Busy")] * 2, execution("pay", "a\nb"), execution("pay", None)]
    assert question_of(len(found)) == "Redrive 4 executions?"
    assert list(about_redrives(found, "http://127.0.0.1:8080/", None, "same")) == [
        "Flows: order (2), pay (2)",
        "Errors: Busy (2), a b (1)",
    ]
    many = [execution(f"f{number}", None) for number in range(5)]
    assert list(about_redrives(many, "https://far.example", "load", "7")) == [
        "Flows: f0 (1), f1 (1), f2 (1) and 2 more",
        "From: load",
        "Definition: version 7",
        "Server: https://far.example",
    ]


def test_what_fails_after_the_question_is_not_redriven(flowserver, failed, monkeypatch):
    """Nor is what another request has redriven meanwhile; that is said."""
    flow, paths = failed

    def confirm(question, _, about):
        assert question == "Redrive 3 executions?"
        assert {f"Flows: {flow} (3)", "Errors: LoadError (3)"} < set(about)
        for name in ("late0", "late1"):
            assert flowserver("start", flow, "--name", name, "--wait", "-q").exit_code == 1
        flowserver("executions", "redrive", paths[1], "--definition", str(version))
        assert flowserver("watch", paths[1], "-q").exit_code == 0

    monkeypatch.setattr("flowserver.cli.remote.redrives.confirm", confirm)
    with Client(os.environ["FLOWSERVER_URL"]) as client:
        broken = client.get_flow(flow).definition
        client.put_flow(flow, WHOLE)
        version = client.publish_version(flow).version
        client.put_flow(flow, broken)
    done = flowserver("executions", "redrive", "--flow", flow, "--definition", str(version))
    assert sorted(done.stdout.splitlines()) == [f"redriven {paths[0]}", f"redriven {paths[2]}"]
    assert done.stderr == "2 redriven, 0 refused.\n1 of 3 did not match any more.\n"
    listed = flowserver("executions", "list", "--flow", flow, "--status", "failed", "-o", "name").stdout
    assert sorted(listed.split()) == [f"{flow}/late0", f"{flow}/late1"]


def test_what_failed_is_found_by_its_end(flowserver, failed):
    """`--since` looks at the start."""
    flow, paths = failed
    listing = ("executions", "list", "--flow", flow)
    found = flowserver(*listing, "--status", "failed", "--ended-since", "1h", "-o", "name")
    assert (found.exit_code, found.stdout.split()) == (0, paths[::-1])
    assert " ENDED " in flowserver(*listing, "--status", "failed", "--ended-since", "1h").stdout
    assert flowserver(*listing, "--status", "failed", "--ended-until", "1h", "-o", "name").stdout == ""
    for others in ([], ["--status", "succeeded"]):
        refused = flowserver(*listing, "--ended-since", "1h", *others)
        assert refused.exit_code == 2
        assert "--status failed" in refused.stderr


def test_a_list_says_that_it_goes_on(flowserver, failed):
    flow, _ = failed
    for name in ("a", "b"):
        flowserver("schedules", "create", f"{flow}/{name}", "--every", "5m")
    for listing in (["executions"], ["schedules", "--flow", flow]):
        for form in ("table", "json", "yaml", "name"):
            cut = flowserver(listing[0], "list", *listing[1:], "--limit", "1", "-o", form)
            assert cut.stderr == "There are more than 1: use --limit, or narrow the search.\n"
            assert cut.stdout.count(f"{flow}/") == (1 if form in ("table", "name") else 0)
    assert flowserver("schedules", "list", "--flow", flow, "--limit", "2").stderr == ""


def test_a_redriven_foreach_is_watched_to_its_new_end(flowserver, tmp_path):
    each = """\
version: v1
type: flow
steps:
  - type: foreach
    name: pack
    inputMappings: [{target: items, source: $input.items}]
    iterationMapping: {collection: $.items, item: item}
    steps: [{type: fail, name: label, error: Broken}]
"""
    (tmp_path / "packs.yaml").write_text(each)
    flowserver("apply", "packs.yaml")
    assert flowserver("start", "packs", "--name", "p", "--input", '{"items": [1, 2, 3]}', "-w").exit_code == 1
    (tmp_path / "packs.yaml").write_text(
        each.replace("{type: fail, name: label, error: Broken}", "{type: pass, name: label}")
    )
    flowserver("apply", "packs.yaml")
    assert flowserver("executions", "redrive", "packs/p", "--definition", "current").exit_code == 0
    watched = flowserver("watch", "packs/p")
    assert watched.exit_code == 0
    assert watched.stderr.splitlines()[-1].startswith("✔ pack")
    assert "3 of 3" in watched.stderr.splitlines()[-1]
    assert watched.stderr.splitlines().count("It was redriven.") == 1


def test_executions_that_wait_for_a_redrive(flowserver, tmp_path):
    (tmp_path / "waiter.yaml").write_text(
        BROKEN.replace("type: fail", "type: wait").replace("error: LoadError, cause: no column", "duration: $.none")
    )
    assert flowserver("apply", "waiter.yaml").exit_code == 0
    assert flowserver("flows", "set", "waiter").exit_code == 2
    changed = flowserver("flows", "set", "waiter", "--on-retries-exhausted", "wait-for-redrive")
    assert (changed.exit_code, changed.stdout) == (0, "changed waiter\n")
    assert "wait-for-redrive" in flowserver("flows", "describe", "waiter").stdout
    path = flowserver("start", "waiter", "--name", "w").stdout.strip()
    assert flowserver("executions", "list", "--waiting-redrive", "-o", "name").stdout == f"{path}\n"
    listed = flowserver("executions", "list", "--waiting-redrive").stdout
    assert "Running; 1 step waits for a redrive" in listed
    refused = flowserver("executions", "list", "--status", "waiting")
    assert refused.exit_code == 2
    assert "--waiting-redrive" in refused.stderr
    described = flowserver("executions", "describe", path).stdout
    assert "Running; 1 step waits for a redrive" in described
    assert "load  waiting for redrive" in described
    assert f"Go on: flowserver executions redrive {path}" in described
    assert re.search(r"on retries exhausted: +wait-for-redrive\n", described)
    done = flowserver("executions", "redrive", "--flow", "waiter", "--waiting-redrive", "--yes")
    assert (done.exit_code, done.stdout) == (0, f"redriven {path}\n")
    assert "redrives:" not in described
    assert re.search(r"redrives: +1, last ", flowserver("executions", "describe", path).stdout)
    assert "  redriveCount=1" in flowserver("executions", "history", path, "--type", "ExecutionRedriven").stdout


def test_watching_says_that_a_step_waits_for_a_redrive(flowserver, tmp_path, monkeypatch):
    """Once, though steps in iterations wait one after the other; again after a redrive that did not help."""
    (tmp_path / "hint.yaml").write_text("""\
version: v1
type: flow
steps:
  - type: foreach
    name: each
    inputMappings: [{target: items, source: $input.items}]
    iterationMapping: {collection: $.items, item: item}
    steps: [{type: wait, name: load, duration: $.none}]
""")
    flowserver("apply", "hint.yaml")
    flowserver("flows", "set", "hint", "--on-retries-exhausted", "wait-for-redrive")
    take, seen = Progress.add, []

    def add(progress, event):
        """Redrive when all steps wait, then stop: while the command watches."""
        yield from take(progress, event)
        seen.append(event.type)
        if event.type == "StepWaitingForRedrive" and seen.count(event.type) == 3:
            flowserver("executions", "redrive", "hint/h")
        elif event.type == "StepWaitingForRedrive" and seen.count(event.type) == 6:
            flowserver("executions", "stop", "hint/h")

    monkeypatch.setattr(Progress, "add", add)
    watched = flowserver("start", "hint", "--name", "h", "--input", '{"items": [1, 2, 3]}', "--wait")
    assert watched.exit_code == 1
    lines = watched.stderr.splitlines()
    waits = re.compile("([1-3]) steps? waits? for a redrive: each\\[")
    assert len([line for line in lines if waits.match(line)]) == 2
    assert lines.count("Go on: flowserver executions redrive hint/h") == 2
    assert lines.count("This command waits on. Come back: flowserver watch hint/h") == 2
    assert lines.count("It was redriven.") == 1
    again = flowserver("watch", "hint/h").stderr
    assert ("for a redrive" in again, "waits on" in again, again.count("It was redriven.\n")) == (False, False, 1)


def test_watching_says_how_many_steps_wait_now(flowserver, tmp_path, monkeypatch):
    """Not how many waited before the last redrive, nor how many when the first began to."""
    (tmp_path / "now.yaml").write_text("""\
version: v1
type: flow
steps:
  - type: foreach
    name: each
    inputMappings: [{target: items, source: $input.items}]
    iterationMapping: {collection: $.items, item: item}
    steps: [{type: wait, name: load, duration: $.none}]
""")
    flowserver("apply", "now.yaml")
    flowserver("flows", "set", "now", "--on-retries-exhausted", "wait-for-redrive")
    flowserver("start", "now", "--name", "n", "--input", '{"items": [1, 2, 3]}')
    _await_waits(3)
    flowserver("executions", "redrive", "now/n")
    _await_waits(6)
    say = following._note_waiting

    def say_and_stop(*about):
        say(*about)
        flowserver("executions", "stop", "now/n")

    monkeypatch.setattr(following, "_note_waiting", say_and_stop)
    lines = flowserver("watch", "now/n").stderr.splitlines()
    assert [line.partition(":")[0] for line in lines if "for a redrive" in line] == ["3 steps wait for a redrive"]
    assert lines.count("It was redriven.") == 1


def _await_waits(count):
    """Read events of `now/n` until so many steps have waited for a redrive."""
    with Client(os.environ["FLOWSERVER_URL"]) as client:
        waits = (event for event in client.events("now", "n") if event.type == "StepWaitingForRedrive")
        assert len(list(islice(waits, count))) == count


def test_what_waits_for_a_redrive_is_drawn():
    progress = Progress()
    types = ["ExecutionStarted", "StepEntered", "StepWaitingForRedrive", "ExecutionRedriven"]
    drawing = Drawing(Execution("o", "x", "Running", INSTANT), progress, [], Console(width=100))
    shown = []
    for number, type in enumerate(types, 1):
        name = "ship" if type.startswith("Step") else ""
        detail = {"error": "FC.Unknown"} if type == "StepWaitingForRedrive" else {}
        list(progress.add(Event(number, type, INSTANT, number - 1, name, None, detail)))
        with drawing.console.capture() as text:
            drawing.console.print(drawing.draw())
        shown.append(text.get())
    progress.parked = "a bug"
    with drawing.console.capture() as text:
        drawing.console.print(drawing.draw())
    assert "  Once that is repaired: flowserver executions restart o/x\n" in text.get()
    hint = "  1 step waits for a redrive: ship: FC.Unknown\n  Go on: flowserver executions redrive o/x\n"
    assert [hint in each for each in shown] == [False, False, True, False]
    (step,) = progress.steps()
    assert (step.redrives, step.error, shown_notes(step)) == (1, "", "1 redrive")
