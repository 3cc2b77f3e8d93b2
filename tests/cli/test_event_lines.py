"""`executions history`: the server's filters, paths with iterations, and the message without matches."""

import json

import pytest

from flowserver.cli.remote.step_states import Progress, State, StepProgress
from flowserver.client import Client

LOOP = """\
version: v1
type: flow
steps:
- type: foreach
  name: each
  iterationMapping: {collection: $.items, item: item}
  steps:
  - type: choice
    name: check
    choices:
    - condition: $.item == 25
      steps: [{type: fail, name: torn, error: Torn}]
    - condition: $.item > 25
      steps: [{type: wait, name: dry, duration: 3600}]
  - {type: pass, name: charge}
"""


@pytest.fixture(scope="module")
def client(server):
    with Client(server.url) as client:
        client.put_flow("loop", LOOP)
        client.start("loop", {"items": list(range(30))}, name="l1")
        client.wait("loop", "l1")
        yield client


@pytest.fixture
def history(run, server, client):
    return lambda *options: run("executions", "history", "loop/l1", *options, "--server", server.url)


def test_the_events_of_one_iteration(history):
    said = history("--step", "each[20].charge", "-o", "json")
    types = ["StepEntered", "StepStarted", "StepSucceeded", "StepExited"]
    found = json.loads(said.stdout)
    assert [(each["type"], each["stepPath"]) for each in found] == [(type, "each[20].charge") for type in types]
    backwards = history("--step", "each[25]", "--reverse", "--type", "stepfailed", "--type", "IterationEntered")
    lines = [line.split() for line in backwards.stdout.splitlines()]
    assert [(line[3], line[4]) for line in lines] == [
        ("StepFailed", "each[25].check"), ("StepFailed", "each[25].check.torn"), ("IterationEntered", "each[25]"),
    ]  # fmt: skip
    followed = history("--step", "each[20].charge", "--follow", "-o", "json").stdout.splitlines()
    assert [json.loads(line) for line in followed] == found
    assert history("--step", "charge", "--type", "StepEntered").stdout.count("StepEntered") == 25


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("each[20].chrage", "No event of a step each[20].chrage; did you mean each[].charge?"),
        ("chrage", "No event of a step chrage; did you mean charge?"),
        ("each[30].charge", "No event of a step each[30].charge; flowserver executions describe loop/l1 says"),
        ("zzz", "No event of a step zzz\n"),
    ],
)
def test_without_matches(history, step, said):
    result = history("--step", step)
    assert (result.exit_code, result.stdout) == (0, "")
    assert said in result.stderr
    assert history("--step", step, "-o", "json").stdout == "[]\n"


def test_all_events_are_shown_and_a_limit_says_so(run, server, client):
    """A history of more than 1,000 events: all pages, and the last event above all."""
    client.start("loop", {"items": [1] * 200}, name="l3")
    client.wait("loop", "l3")
    history = ("executions", "history", "loop/l3", "--server", server.url)
    shown = run(*history)
    lines = shown.stdout.splitlines()
    assert len(lines) > 1_000
    assert "ExecutionSucceeded" in lines[-1]
    assert shown.stderr == ""
    assert [each["eventId"] for each in json.loads(run(*history, "-o", "json").stdout)] == [
        int(line.split()[0]) for line in lines
    ]
    assert run(*history, "-o", "name").stdout.split() == [line.split()[0] for line in lines]
    for form in ("table", "json"):
        limited = run(*history, "--limit", "2", "-o", form)
        assert limited.stdout.count("ExecutionStarted") == 1
        assert limited.stderr == "There are more than 2: use --limit, or narrow the search.\n"
    exactly = run(*history, "--limit", len(lines))
    assert (exactly.stdout, exactly.stderr) == (shown.stdout, "")
    assert run(*history, "--follow", "--limit", "2").stdout.splitlines() == lines[:2]


def test_watching_and_describing_count_alike(client, run, server):
    """Also after a failure: both use the same fold."""
    progress = Progress()
    for event in client.events("loop", "l1"):
        list(progress.add(event))
    (line,) = progress.steps()
    (described, *_) = list(client.steps("loop", "l1"))
    counts = described.iterations
    assert counts is not None
    assert (counts.total, counts.done, counts.failed, counts.aborted, counts.running) == (30, 0, 1, 29, 0)
    assert line.iterations is not None
    assert {name: getattr(line.iterations, name) for name in counts.__struct_fields__} == {
        name: getattr(counts, name) for name in counts.__struct_fields__
    }
    assert line.state is State.FAILED
    described = run("executions", "describe", "loop/l1", "--server", server.url).stdout
    watched = run("watch", "loop/l1", "--server", server.url).stderr
    assert "0 of 30, 1 failed, 29 aborted" in described
    assert "0 of 30  1 failed  29 aborted" in watched


def test_open_steps_at_the_end_count_as_aborted(client):
    client.start("loop", {"items": list(range(26, 30))}, name="l2")
    events = []
    for event in client.events("loop", "l2"):
        events.append(event)
        if event.type == "StepStarted" and event.step_name == "dry" and len(events) > 20:
            break
    client.stop("loop", "l2")
    progress = Progress()
    changed: list[StepProgress] = []
    for event in client.events("loop", "l2"):
        changed += progress.add(event)
    assert progress.status == "Stopped"
    assert [step.name for step in changed] == ["each", "each"]
    assert changed[-1].state is State.ABORTED
    assert changed[-1].iterations is not None
    (described, *_) = list(client.steps("loop", "l2"))
    assert described.iterations is not None
    assert changed[-1].iterations.aborted == described.iterations.aborted == 4
