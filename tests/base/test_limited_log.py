"""Lines of the log that are limited: how many are written, and what the next one says."""

import logging
from collections.abc import Callable

import pytest

from flowserver.base.limited_log import KEYS_MAX, LINES_IN_ALL, LINES_PER_KEY, LimitedLog

log = logging.getLogger(__name__)

Write = Callable[[str, float], None]


@pytest.fixture
def write(caplog: pytest.LogCaptureFixture) -> Write:
    """Write a line of a key at an instant in seconds."""
    caplog.set_level(logging.INFO)
    seconds = [0.0]
    lines = LimitedLog(log, lambda: seconds[0])

    def one(key: str, at: float) -> None:
        seconds[0] = at
        lines.write(logging.INFO, key, "%(key)s failed", {"key": key})

    return one


def test_the_next_line_says_how_many_were_left_out(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1_000):
        write("f", number / 1_000)
    assert caplog.messages == ["f failed"] * LINES_PER_KEY
    caplog.clear()
    write("f", 1.0)
    write("f", 1.1)
    assert caplog.messages == [f"f failed (such lines left out before: {1_000 - LINES_PER_KEY})", "f failed"]


def test_one_key_does_not_hide_others(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2 * LINES_PER_KEY):
        write("noisy", 5.0)
    write("quiet", 5.5)
    assert caplog.messages[-1] == "quiet failed"


def test_all_keys_together_are_limited(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(2 * KEYS_MAX):
        write(f"f{number}", 5.0)
    assert len(caplog.messages) == LINES_IN_ALL
    write("f1999", 6.0)
    assert caplog.messages[-1] == "f1999 failed (such lines left out before: 1)"


def test_lines_below_the_level_are_not_counted(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(2 * LINES_PER_KEY):
        write("f", 5.0)
    caplog.set_level(logging.INFO)
    write("f", 5.0)
    assert caplog.messages == ["f failed"]
