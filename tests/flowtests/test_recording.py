"""A test recorded from an execution passes, and expects what the execution did."""

import shutil
from pathlib import Path

import pytest
import yaml

from flowserver.base.limits import Limits
from flowserver.flowtests.loading import Loader, files_in
from flowserver.flowtests.outcomes import Rules, run_case
from flowserver.flowtests.recording import NotRecordable, RecordedEvent, record
from flowserver.machine.events import whole_detail
from tests.examples.conftest import EXAMPLES

LOADER = Loader(Limits())
LOADED = [LOADER.load(file, file.read_text("utf-8")) for file in files_in([EXAMPLES])]
CASES = [(tests, case) for tests in LOADED for case in tests.cases]
STARTED = RecordedEvent("ExecutionStarted", "", 1_767_225_600_000, {"input": {}})


def recorded(tests, case):
    """The recording of the case's run."""
    events = []

    def observe(running, event, path):
        if running.source is tests.source:
            events.append(RecordedEvent(event.type, path, event.time_ms, whole_detail(event)))

    outcome = run_case(tests, case, Rules(Limits()), observe)
    return outcome, record(events, definition="flow.yaml", flow="f", execution="e-1")


@pytest.mark.parametrize(("tests", "case"), CASES, ids=lambda each: getattr(each, "name", ""))
def test_recorded_tests_pass(tests, case, tmp_path):
    outcome, recording = recorded(tests, case)
    shutil.copy(tests.source.file, tmp_path / "flow.yaml")
    file = tmp_path / "r.flowtest.yaml"
    file.write_text(yaml.safe_dump(recording.document, sort_keys=False))
    again = Loader(Limits()).load(file, file.read_text())
    (repeated,) = again.cases
    result = run_case(again, repeated, Rules(Limits()))
    assert (result.failures, result.warnings) == ((), ())
    assert (result.record.took_ms, result.record.entered) == (outcome.record.took_ms, outcome.record.entered)
    assert recording.document["tests"][0]["expect"]["path"] == outcome.record.entered


def test_secrets_are_hidden():
    given = {
        "user": {"password": "p", "name": "n"},
        "apiKey": "k",
        "tokens": {"a": 1},
        "list": [{"secret": 1}],
        "cookies": ["c", {"n": 1}],
    }
    events = [
        STARTED._replace(detail={"input": given}),
        RecordedEvent("ExecutionSucceeded", "", STARTED.time_ms, {"output": {"sessionToken": "t"}}),
    ]
    recording = record(events, definition="flow.yaml", flow="f", execution="e")
    (test,) = recording.document["tests"]
    assert test["input"] == {
        "user": {"password": "(hidden)", "name": "n"},
        "apiKey": "(hidden-2)",
        "tokens": {"a": 1},
        "list": [{"secret": "(hidden-3)"}],
        "cookies": ["(hidden-4)", {"n": 1}],
    }
    assert test["expect"]["output"] == {"sessionToken": "(hidden-5)"}
    assert recording.hidden == 5


LEAK = """\
version: v1
type: flow
steps:
  - type: task
    name: Reserve
    resourceArn: acs:fc:::services/s/functions/reserve
    outputMappings: [{target: ref, source: $local.apiKey}, {target: note, source: $local.note}]
  - {type: pass, name: Token, outputMappings: [{target: again, source: $input.ref}]}
  - type: choice
    name: Check
    choices: [{condition: $.ref == $.again && CONDITION, goto: Good}]
    default: {goto: Bad}
  - {type: succeed, name: Good}
  - {type: fail, name: Bad}
"""
REPLY = {
    "apiKey": "AK-123-secret",
    "note": "Bearer abc.def",
    "url": "https://me:pass-word@example.com/AK-123-secret?x=1",
    "keys": ["AKIAIOSFODNN7EXAMPLE", "ok"],
}


@pytest.mark.parametrize(
    ("condition", "kept"), [('$.note != "Bearer"', False), ('$.ref == "AK-123-secret"', True)], ids=["hidden", "kept"]
)
def test_a_secret_is_hidden_wherever_it_is_and_the_test_passes(tmp_path, condition, kept):
    """Its stand-in is the same under each name and within texts; what the definition holds itself stays."""
    text = LEAK.replace("CONDITION", condition)
    (tmp_path / "flow.yaml").write_text(text)
    tests = yaml.safe_dump({"flow": "flow.yaml", "tests": [{"name": "a", "steps": {"Reserve": {"return": REPLY}}}]})
    given = LOADER.load(tmp_path / "a.flowtest.yaml", tests)
    events = []
    observe = lambda _, event, path: events.append(  # noqa: E731
        RecordedEvent(event.type, path, event.time_ms, whole_detail(event))
    )
    run_case(given, given.cases[0], Rules(Limits()), observe)
    recording = record(events, definition="flow.yaml", flow="f", execution="e", definition_text=text)
    written = yaml.safe_dump(recording.document, sort_keys=False)
    for secret in ("abc.def", "pass-word", "AKIAIOSFODNN7EXAMPLE"):
        assert secret not in written
    assert ("AK-123-secret" in written, recording.kept) == (kept, int(kept))
    (reply,) = recording.document["tests"][0]["steps"]["Reserve"]
    assert reply["return"]["note"].startswith("Bearer (hidden")
    again = LOADER.load(tmp_path / "r.flowtest.yaml", written)
    result = run_case(again, again.cases[0], Rules(Limits()))
    assert (result.failures, result.warnings) == ((), ())


@pytest.mark.parametrize(
    ("type", "reason"),
    [
        ("ExecutionStopped", "it was stopped"),
        ("ExecutionRedriven", "it was redriven"),
        ("StepEntered", "it has not ended"),
    ],
)
def test_not_every_execution_can_be_repeated(type, reason):
    with pytest.raises(NotRecordable, match=reason):
        record(
            [STARTED, RecordedEvent(type, "s", STARTED.time_ms, {})], definition="flow.yaml", flow="f", execution="e"
        )


def test_examples_are_there():
    assert {Path(tests.file).parent.name for tests in LOADED} >= {"approval", "finally", "polling", "saga"}
