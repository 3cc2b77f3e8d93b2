"""Deletions by age pause while a clock and the time that has passed differ."""

import logging

import pytest

from flowserver.base.clock import DAY_MS, SystemClock
from flowserver.base.clock_watch import ClockWatch
from tests.support.clock import ManualClock

SETTLE_SECONDS = 3_600


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def watch(clock: ManualClock) -> ClockWatch:
    return ClockWatch(clock, differ_seconds=60, settle_seconds=SETTLE_SECONDS)


def test_time_that_passes_pauses_nothing(clock: ManualClock, watch: ClockWatch) -> None:
    clock.advance(seconds=400 * 86_400)
    assert watch.deletion_now() == clock.now_ms()
    assert (watch.pause, watch.look(), watch.steps) == (None, 0, 0)


def test_a_small_correction_pauses_nothing(clock: ManualClock, watch: ClockWatch) -> None:
    for _ in range(10):
        clock.step(-59_000)
        clock.advance(seconds=2 * 3_600)
        assert watch.deletion_now() == clock.now_ms()


def test_small_corrections_add_up(clock: ManualClock, watch: ClockWatch) -> None:
    for _ in range(3):
        clock.step(30_000)
        watch.look()
    assert watch.pause == "the clock is 90 s ahead of the time that has passed"


def test_a_clock_that_is_ahead_pauses_deletions_from_its_first_instant(
    clock: ManualClock, watch: ClockWatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock.step(32 * DAY_MS)
    assert watch.deletion_now() is None
    assert watch.look() == 32 * DAY_MS
    clock.advance(seconds=30 * 86_400)
    assert watch.deletion_now() is None
    assert "the clock was set forward by 2,764,800 s" in caplog.text
    assert "deletions by age pause until it is right, or the server is restarted" in caplog.text


def test_deletions_continue_when_the_clock_has_been_right_for_a_while(
    clock: ManualClock, watch: ClockWatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock.step(32 * DAY_MS)
    assert watch.deletion_now() is None
    clock.advance(seconds=75)
    clock.step(-32 * DAY_MS)
    assert watch.deletion_now() is None
    clock.advance(seconds=SETTLE_SECONDS - 1)
    assert watch.deletion_now() is None
    clock.advance(seconds=1)
    assert watch.deletion_now() == clock.now_ms()
    assert watch.steps == 2
    assert "deletions by age continue" in caplog.text


def test_a_clock_that_was_set_back_is_believed_after_a_while(clock: ManualClock, watch: ClockWatch) -> None:
    clock.step(-5 * DAY_MS)
    assert watch.deletion_now() is None
    clock.advance(seconds=SETTLE_SECONDS)
    assert watch.deletion_now() == clock.now_ms()
    assert watch.look() == 0


def test_a_clock_that_is_set_again_begins_the_while_anew(clock: ManualClock, watch: ClockWatch) -> None:
    clock.step(-5 * DAY_MS)
    assert watch.pause
    clock.advance(seconds=SETTLE_SECONDS - 1)
    clock.step(-DAY_MS)
    clock.advance(seconds=2)
    assert watch.deletion_now() is None
    clock.advance(seconds=SETTLE_SECONDS)
    assert watch.deletion_now() == clock.now_ms()


def test_a_clock_set_back_and_then_too_far_forward_stays_paused(clock: ManualClock, watch: ClockWatch) -> None:
    clock.step(-DAY_MS)
    assert watch.pause
    clock.step(40 * DAY_MS)
    clock.advance(seconds=SETTLE_SECONDS * 2)
    assert watch.deletion_now() is None


@pytest.mark.parametrize("days", [32, -32])
def test_a_start_with_another_time_than_that_of_the_database(clock: ManualClock, watch: ClockWatch, days: int) -> None:
    watch.begin(clock.now_ms() - days * DAY_MS)
    assert watch.deletion_now() is None
    clock.advance(seconds=SETTLE_SECONDS)
    assert watch.deletion_now() == clock.now_ms()


def test_a_start_soon_after_the_last_instant_pauses_nothing(clock: ManualClock, watch: ClockWatch) -> None:
    watch.begin(clock.now_ms() - 60_000)
    assert watch.deletion_now() == clock.now_ms()


def test_a_start_over_an_empty_database_pauses_nothing(clock: ManualClock, watch: ClockWatch) -> None:
    watch.begin(None)
    assert watch.deletion_now() == clock.now_ms()


def test_nodes_whose_clocks_differ_delete_nothing(
    clock: ManualClock, watch: ClockWatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.compare_others(60_000)
    assert watch.deletion_now() is not None
    watch.compare_others(-32 * DAY_MS)
    clock.advance(seconds=SETTLE_SECONDS)
    assert watch.deletion_now() is None
    caplog.set_level(logging.WARNING)
    watch.compare_others(12)
    assert watch.deletion_now() is None
    clock.advance(seconds=SETTLE_SECONDS)
    assert watch.deletion_now() == clock.now_ms()


def test_the_machines_clocks_agree() -> None:
    clock = SystemClock()
    watch = ClockWatch(clock, differ_seconds=60, settle_seconds=1)
    assert abs(watch.look()) < 60_000
    assert clock.steady_ms() <= clock.steady_ms()
