"""Measured calls of functions: counts, errors by name, times, and bounds of time and memory."""

import asyncio
from typing import Any

import pytest

from flowserver.base.limits import Limits
from flowserver.invokers import function_health
from flowserver.invokers.calls import Endpoint, Failed, Replied, Reply
from flowserver.invokers.function_health import ERROR_NAMES_MAX, OTHER_ERRORS, WINDOW_SECONDS, FunctionHealth
from flowserver.invokers.measured_calls import MeasuredInvoker
from tests.invokers.conftest import make_invocation

KEY = ("shop.prod", "charge")


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Answers:
    """An invoker that takes some seconds and gives these answers; an exception is raised."""

    def __init__(self, time: Time, *answers: tuple[float, Any]) -> None:
        self._time = time
        self._answers = list(answers)

    async def invoke(self, *_: Any) -> Any:
        seconds, answer = self._answers.pop(0)
        self._time.now += seconds
        if isinstance(answer, BaseException):
            raise answer
        return answer

    exchange = send = invoke

    async def close(self) -> None:
        self._answers.clear()


async def test_calls_of_steps_and_invocations_are_measured() -> None:
    time = Time()
    refused = Reply(503, {}, b'{"ErrorCode": "Busy"}')
    own = Reply(200, {"X-Fc-Error-Type": "HandledInvocationError"}, b'{"errorType": "NoStock"}')
    answers: list[tuple[float, Any]] = [(0.010, Replied({}))] * 18
    answers += [(0.010, Reply(200, {}, b"no JSON")), (0.010, Failed("FC.Unknown", "broken off"))]
    answers += [(2.0, refused), (2.0, own), (9.0, asyncio.CancelledError())]
    measured = MeasuredInvoker(Limits(), Answers(time, *answers))  # type: ignore[arg-type]
    measured.health.now = time
    endpoint = Endpoint("http://127.0.0.1:9/", {}, 60, KEY)
    for number in range(len(answers) - 1):
        call = measured.invoke if number < 18 else measured.exchange
        await call(make_invocation(), endpoint)
    with pytest.raises(asyncio.CancelledError):
        await measured.invoke(make_invocation(), endpoint)
    health = measured.health.of(KEY)
    assert (health.calls, health.errors, health.in_flight) == (22, 3, 0)
    assert health.errors_by_name == {"FC.Busy": 1, "FC.Unknown": 1, "NoStock": 1}
    assert health.p50_ms is not None
    assert health.p95_ms is not None
    assert 10 <= health.p50_ms <= 12.2
    assert 2_000 <= health.p95_ms <= 2_400
    assert measured.health.keys() == [KEY]


def test_numbers_are_of_the_last_minutes() -> None:
    time = Time()
    health = FunctionHealth(Limits(), time)
    running = health.begun(KEY)
    health.begun(KEY).ended(time(), 0.001, "A")
    time.now += WINDOW_SECONDS - function_health.SLICE_SECONDS
    health.begun(KEY).ended(time(), 0.001, None)
    assert (health.of(KEY).calls, health.of(KEY).errors, health.of(KEY).in_flight) == (2, 1, 1)
    time.now += 2 * function_health.SLICE_SECONDS
    assert (health.of(KEY).calls, health.of(KEY).errors_by_name) == (1, {})
    time.now += WINDOW_SECONDS
    running.ended(time(), 10**6, None)
    assert (health.of(KEY).calls, health.of(KEY).in_flight) == (1, 0)
    assert health.of(("", "unknown")) == function_health.Health(0, 0, {}, None, None, None, 0)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_health, "FUNCTIONS_MAX", 3)
    time = Time()
    health = FunctionHealth(Limits(), time)
    for name in "abcad":
        health.begun(("s", name)).ended(time(), 0.001, None)
    assert health.keys() == [("s", "a"), ("s", "c"), ("s", "d")]
    for number in range(50):
        health.begun(KEY).ended(time(), 0.001, f"E{number}")
    named = health.of(KEY).errors_by_name
    assert len(named) == ERROR_NAMES_MAX + 1
    assert named[OTHER_ERRORS] == 50 - ERROR_NAMES_MAX
    for _ in range(1_000):
        time.now += function_health.SLICE_SECONDS
        health.begun(KEY).ended(time(), 0.001, None)
    assert health.of(KEY).calls == function_health.SLICES


def test_totals_are_of_the_first_functions_and_of_all_others_together() -> None:
    """A function that is forgotten here counts on where it was, so that no counter falls."""
    health = FunctionHealth(Limits(metric_functions_max=2, metric_names_max=1), Time())
    for name in "abcda":
        health.begun(("s", name)).ended(0, 1, None, attempt=2)
    health.begun(("s", "a")).ended(0, 1, "NoMoney")
    health.begun(("s", "a"))
    health.begun(("s", "b")).was_cancelled()
    totals = dict(health.totals())
    assert list(totals) == [("s", "a"), ("s", "b"), ("", OTHER_ERRORS)]
    assert totals["s", "a"].results == {None: 2, OTHER_ERRORS: 1}
    assert [each.retries for each in totals.values()] == [2, 1, 2]
    assert [each.in_flight for each in totals.values()] == [1, 0, 0]
    assert [sum(each.durations.numbers()[0]) for each in totals.values()] == [3, 1, 2]
