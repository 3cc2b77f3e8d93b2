"""The text of `executions describe`."""

import re
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.event_lines import shown_event
from flowserver.cli.remote.execution_description import described, shown_error
from flowserver.cli.remote.execution_states import state_of
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.start import show_ended
from flowserver.client.results import CurrentStep, Event, Execution, Step

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = "2026-01-01T00:00:00.000Z"


def _described(*current: CurrentStep, count: int, steps: tuple[Step, ...] = ()) -> str:
    execution = Execution(
        flow_name="order",
        name="e",
        status="Failed",
        started_time=EARLIER,
        current_steps=list(current),
        current_step_count=count,
    )
    return described(execution, steps, NOW)


def test_aborted_iterations_are_one_line() -> None:
    failed = CurrentStep("pack[0].label", "Failed")
    aborted = [CurrentStep(f"pack[{number}].label", "Aborted") for number in range(1, 100)]
    lines = _described(failed, *aborted, count=130).splitlines()
    at = [line.split("  ") for line in lines if "pack" in line]
    assert [[part.strip() for part in line if part.strip()] for line in at] == [
        ["pack[0].label", "failed"],
        ["pack[].label (×99)", "aborted"],
    ]
    assert "  and 30 more: flowserver executions history order/e" in lines
    running = [CurrentStep(f"pack[{number}].label", "Running") for number in range(37)]
    assert "  and 17 more: flowserver executions describe order/e -o json\n" in f"{_described(*running, count=37)}\n"


def test_long_documents_are_cut() -> None:
    numbers = Execution(
        "order", "e", "Running", EARLIER, input={"numbers": list(range(300))}, output={"text": "x" * 900}
    )
    lines = described(numbers, (), NOW).partition("input:\n")[2].splitlines()
    place = lines.index("output:")
    assert (place, lines[place - 2 : place]) == (
        42,
        ["  … 264 more lines", "The whole input: flowserver executions describe order/e -o json"],
    )
    assert [len(line) for line in lines[place + 1 : -1]] == [1, 400, 1]
    assert lines[-1] == "The whole output: flowserver executions describe order/e -o json"
    short = described(replace(numbers, input={"a": [1]}, output=None), (), NOW)
    assert short.endswith('input:\n{\n  "a": [\n    1\n  ]\n}')


def test_the_execution_of_a_sub_flow_is_named() -> None:
    assert "waiting for sub flow pay/p" in _described(CurrentStep("ship", "WaitingForSubFlow", child="pay/p"), count=1)
    assert "failed, sub-flow pay/p" in _described(CurrentStep("ship", "Failed", child="pay/p"), count=1)


def test_statuses_are_those_of_the_api_with_what_is_waited_for() -> None:
    execution = Execution("order", "e", "Running", EARLIER)
    assert state_of(execution) == "Running"
    assert state_of(replace(execution, waiting_steps=2)) == "Running; 2 steps wait for a redrive"
    assert state_of(replace(execution, waiting_steps=1, parked_error="gone")) == "Running; parked"
    steps = [Step(f"s{number}", "Running", EARLIER, EARLIER, running=2 - number, waiting=1) for number in range(2)]
    text = _described(count=0, steps=tuple(steps))
    assert "s0    Running; 1 step waits for a redrive" in text
    assert "s1    Running; waits for a redrive " in text


def test_a_step_that_has_succeeded_shows_no_error_and_the_time_of_its_last_run() -> None:
    began, last = "2026-01-01T00:01:00.000Z", "2026-01-01T00:01:02.000Z"
    step = Step("ship", "Succeeded", EARLIER, last, began, attempts=1, redrives=1, error="Busy")
    (line,) = [line for line in _described(count=0, steps=(step,)).splitlines() if "ship" in line]
    assert line.split() == ["ship", "Succeeded", "2.00s", "1", "redrive"]


def test_lists_show_the_cause_of_an_error_without_a_name() -> None:
    stopped = Execution("order", "e", "Stopped", EARLIER, error="", cause="the customer left")
    assert shown_error(stopped) == "the customer left"
    failed = replace(stopped, error="ValueError", cause='{"errorMessage": "card expired", "stackTrace": []}')
    assert shown_error(failed) == "ValueError: card expired"


def test_the_error_object_of_a_function_is_shown_by_its_message() -> None:
    cause = '{"errorMessage": "card expired", "errorType": "ValueError", "stackTrace": []}'
    failed = Execution("order", "e", "Failed", EARLIER, error="ValueError", cause=cause)
    assert re.search(r"^cause: +card expired$", described(failed, (), NOW), re.M)
    with pytest.raises(CommandFailed, match=r"^order/e ended as Failed: ValueError: card expired$"):
        show_ended(Session({}), failed)
    event = Event(7, "TaskFailed", EARLIER, step_name="pay", detail={"error": "ValueError", "cause": cause})
    assert shown_event(event, NOW).endswith("error=ValueError cause=card expired")


def test_calls_of_iterations_are_not_shown_as_retries() -> None:
    steps = (
        Step("packing[].pack", "Succeeded", EARLIER, EARLIER, entered=3, attempts=3),
        Step("loop", "Succeeded", EARLIER, EARLIER, entered=2, attempts=2),
        Step("ship", "Succeeded", EARLIER, EARLIER, entered=1, attempts=2),
    )
    text = _described(count=0, steps=steps)
    assert [text.count(notes) for notes in ("3 calls", "2 calls", "2 attempts", "3 attempts")] == [1, 1, 1, 0]
