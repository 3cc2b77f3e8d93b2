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
    hidden = "(hidden)"
    assert test["input"] == {
        "user": {"password": hidden, "name": "n"},
        "apiKey": hidden,
        "tokens": {"a": 1},
        "list": [{"secret": hidden}],
        "cookies": [hidden, {"n": 1}],
    }
    assert test["expect"]["output"] == {"sessionToken": hidden}
    assert recording.hidden == 5


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
