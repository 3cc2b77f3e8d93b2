"""`wait` without a server: how often it asks, and for how long it lets the server wait."""

from collections.abc import Iterator

import pytest

from flowserver.client import WaitedTooLong, waiting
from flowserver.client.exchanges import Answer, Pause, Request

RUNNING = b'{"flowName": "f", "name": "e", "status": "Running", "startedTime": "2026-01-02T03:04:05Z"}'


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr("flowserver.client.waiting.time", clock)
    return clock


def waits_and_pauses(clock: Clock, timeout_seconds: float, *, is_parked: bool) -> tuple[list[int], list[float]]:
    """What `wait` asks the server to wait, and its pauses, until its time-out."""
    waits: list[int] = []
    pauses: list[float] = []
    conversation = waiting.wait("f", "e", timeout_seconds=timeout_seconds)
    wanted = next(conversation)
    try:
        while True:
            if isinstance(wanted, Pause):
                pauses.append(wanted.seconds)
                clock.now += wanted.seconds
                wanted = next(conversation)
                continue
            assert isinstance(wanted, Request)
            waits.append(int(str(wanted.query.get("wait", 0))))
            clock.now += 0.001 if is_parked else waits[-1] + 0.001
            wanted = conversation.send(Answer(200, {}, RUNNING))
    except WaitedTooLong:
        return waits, pauses


@pytest.mark.parametrize(
    ("timeout_seconds", "waits"), [(0, [0]), (0.4, [1]), (1.4, [2]), (2, [2]), (31.4, [30, 2]), (60, [30, 30])]
)
def test_the_server_waits_the_whole_time(clock: Clock, timeout_seconds: float, waits: list[int]) -> None:
    assert waits_and_pauses(clock, timeout_seconds, is_parked=False) == (waits, [])


def test_a_parked_execution_is_asked_for_with_pauses(clock: Clock) -> None:
    """The server answers at once for it."""
    waits, pauses = waits_and_pauses(clock, 60, is_parked=True)
    assert len(waits) < 30
    assert len(pauses) == len(waits) - 1
    assert pauses[0] <= 0.2
    assert max(pauses) <= 5
    assert clock.now < 160.1
