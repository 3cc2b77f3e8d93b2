"""Background work takes at most a third of the time for any number of threads, and less beside urgent work.

While there is none it takes all the time that it can get.
"""

import threading

import pytest

from flowserver.concurrency.background_throttle import (
    PAUSE_SECONDS_MAX,
    QUIET_SECONDS,
    REST,
    SLICE_SECONDS,
    WAIT_SLICES,
    Background,
)


class Thread:
    """The time as one thread sees it: a second of its work passes for all."""

    def __init__(self) -> None:
        self.now = self.used = 0.0
        self.slept: list[float] = []
        self.background = Background(lambda: self.used, lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.used += seconds
        self.background.yield_to_writer()

    def commit(self) -> None:
        with self.background.paused():
            pass


@pytest.fixture
def thread() -> Thread:
    """Of a server that has just committed something."""
    made = Thread()
    made.commit()
    return made


def test_little_work_is_not_interrupted(thread: Thread) -> None:
    thread.work(SLICE_SECONDS / 2)
    assert thread.slept == []


def test_other_work_has_the_rest_of_the_time(thread: Thread) -> None:
    for _ in range(50):
        thread.commit()
        thread.work(2 * SLICE_SECONDS)
    assert sum(thread.slept) == pytest.approx(REST * thread.used)


def test_threads_share_the_time_for_background_work(thread: Thread) -> None:
    """The pause of the second thread begins after the time at which the first may continue."""
    thread.work(0.002)
    thread.now -= 0.002 + REST * 0.002
    thread.used = 0.0
    thread.background._own = threading.local()
    thread.work(0.002)
    assert thread.slept == [pytest.approx(REST * 0.002), pytest.approx(REST * 0.002 + 0.002 + REST * 0.002)]


def test_a_pause_is_bounded_for_all_work(thread: Thread) -> None:
    for _ in range(5):
        thread.commit()
        with thread.background.paused():
            thread.work(3.0)
    assert max(thread.slept) <= 2 * REST * PAUSE_SECONDS_MAX


def test_it_waits_for_urgent_work_but_not_forever(thread: Thread, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    is_quiet = thread.background._is_quiet
    monkeypatch.setattr(is_quiet, "wait", lambda seconds: waits.append(0 if is_quiet.is_set() else seconds))
    thread.work(SLICE_SECONDS)
    with thread.background.paused():
        thread.work(SLICE_SECONDS)
    thread.work(SLICE_SECONDS)
    assert waits == [0, pytest.approx(WAIT_SLICES * SLICE_SECONDS), 0]


def test_without_urgent_work_it_never_pauses(thread: Thread) -> None:
    thread.now += QUIET_SECONDS + SLICE_SECONDS
    for _ in range(5):
        thread.work(SLICE_SECONDS)
    assert thread.slept == []
    with thread.background.paused():
        thread.work(SLICE_SECONDS)
    thread.work(SLICE_SECONDS)
    assert thread.slept == [pytest.approx(REST * SLICE_SECONDS)] * 2


def test_a_new_server_does_not_pause() -> None:
    thread = Thread()
    thread.work(1.0)
    assert thread.slept == []
