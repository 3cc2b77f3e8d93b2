"""`wait`: constants, computed values, invalid values, and timers that are early, late or repeated."""

from typing import Any

import pytest

from flowserver.base.clock import format_instant
from flowserver.base.limits import Limits
from flowserver.machine.messages import TimerFired
from flowserver.machine.state import Status, WaitKind
from tests.support.flows import flow
from tests.support.world import NOW_MS, World, lines, trace

TWO_DAYS = 172_800


def _wait(attribute: str, **input: object) -> World:
    world = World(flow(f"- {{type: wait, name: w, {attribute}}}"), input=input)
    world.run()
    return world


def test_the_step_succeeds_when_its_instant_has_come() -> None:
    world = World(flow("- {type: wait, name: w, duration: 3, outputMappings: [{target: a, source: 1}]}"))
    world.start()
    assert (world.scope.wait, world.scope.wake_at) == (WaitKind.TIMER, NOW_MS + 3_000)
    world.wake()
    assert trace(world.events)[1:] == lines("""
        2 1 w StepEntered        {"input":{},"local":{}}
        3 2 w StepStarted        {"input":{}}
        4 3 w StepSucceeded      {"output":{}}
        5 4 w StepExited         {"local":{"a":1}}
        6 5 - ExecutionSucceeded {"output":{"a":1}}
    """)
    assert [event.time_ms - NOW_MS for event in world.events] == [0, 0, 0, 3_000, 3_000, 3_000]


def test_a_timer_counts_only_when_due_and_only_once() -> None:
    world = World(flow("- {type: wait, name: w, duration: 3}\n- {type: wait, name: v, duration: 4}"))
    world.start()
    fired = TimerFired(1, world.scope.wait_id)
    world.now_ms += 2_999
    assert world.ignores(fired)
    world.now_ms += 1
    world.tell(fired)
    assert world.scope.wake_at == NOW_MS + 7_000
    world.now_ms += 4_000
    assert world.ignores(fired)
    assert world.ignores(TimerFired(2, world.scope.wait_id))


def test_a_fired_timer_is_spent_even_before_the_next_turn() -> None:
    steps = "- {type: wait, name: w, duration: 3}\n- {type: pass, name: p}"
    world = World(flow(steps), limits=Limits(turn_steps_max=1))
    world.start()
    fired = TimerFired(1, world.scope.wait_id)
    world.wake()
    assert world.ignores(fired)


@pytest.mark.parametrize(
    ("attribute", "value", "seconds"),
    [
        ("duration: 5", None, [5]),
        ("duration: 0", None, []),
        ("duration: $.v", 5, [5]),
        ("duration: $.v", 1.5, [1.5]),
        ("duration: $.v", 0, []),
        ("duration: $.v", TWO_DAYS, [TWO_DAYS]),
        ("timestamp: $.v", format_instant(NOW_MS + 60_000), [60]),
        ("timestamp: $.v", "2023-11-15T00:13:20+02:00", []),
        ("timestamp: $.v", "1969-07-20T20:17:40Z", []),
        ("timestamp: $.v", format_instant(NOW_MS + 60_000).lower(), [60]),
        ("timestamp: 2020-01-01T00:00:00Z", None, []),
        ("timestamp: 2023-11-14T22:14:20.5Z", None, [60.5]),
    ],
)
def test_durations_and_instants(attribute: str, value: Any, seconds: list[float]) -> None:
    world = _wait(attribute, v=value)
    assert (world.execution.status, world.pauses_seconds) == (Status.SUCCEEDED, seconds)


@pytest.mark.parametrize(
    "value", ["5", "", True, None, -1, -0.5, [], {}, TWO_DAYS + 1, TWO_DAYS + 0.001, 10**400, 1e308], ids=repr
)
def test_invalid_durations(value: Any) -> None:
    execution = _wait("duration: $.v", v=value).execution
    assert (execution.status, execution.error) == (Status.FAILED, "FnF.RuntimeError")


@pytest.mark.parametrize(
    "value",
    [
        5, True, None, [], "", "soon", "2030-01-01", "2030-01-01T00:00:00", "2030-13-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59", "2023-11-16T22:13:20.001Z",
    ],
    ids=repr,
)  # fmt: skip
def test_invalid_instants_or_too_far(value: Any) -> None:
    execution = _wait("timestamp: $.v", v=value).execution
    assert (execution.status, execution.error) == (Status.FAILED, "FnF.RuntimeError")


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (None, "null"), ("2", '"2"'), ({"a": "é"}, '{"a":"é"}')])
@pytest.mark.parametrize("attribute", ["duration: $.v", "timestamp: $.v"])
def test_a_value_that_is_not_a_time_is_shown_as_json(attribute: str, value: Any, text: str) -> None:
    assert (_wait(attribute, v=value).execution.cause or "").endswith(f": {text}")


@pytest.mark.parametrize("attribute", ["duration: $.gone", "timestamp: $.gone"])
def test_a_path_that_finds_nothing(attribute: str) -> None:
    execution = _wait(attribute).execution
    assert execution.error == "FnF.RuntimeError"
    assert (execution.cause or "").endswith("not found")


def test_a_constant_instant_beyond_the_longest_wait_fails_when_it_is_reached() -> None:
    execution = _wait("timestamp: 2030-01-01T00:00:00Z").execution
    assert execution.cause == f"the wait is longer than {Limits().wait_seconds_max} seconds"
