"""Durations are shown as they are written."""

import json
import subprocess
from pathlib import Path

import pytest

from flowserver.base.durations import duration_seconds, rounded_duration, shown_duration
from tests.support.node import NODE

CONSOLE = Path(__file__).parents[2] / "flowserver" / "console" / "parts" / "durations.js"
SHOWN = {
    -5: "0s",
    0: "0s",
    310: "310ms",
    1_239: "1.23s",
    9_999: "9.99s",
    12_499: "12.4s",
    59_999: "59.9s",
    187_900: "3m7s",
    3_600_000: "1h",
    7_387_000: "2h3m7s",
    86_399_999: "23h59m59s",
    86_408_000: "1d",
    273_800_000: "3d4h",
}


def test_rounded_durations_are_durations() -> None:
    assert {ms: rounded_duration(ms) for ms in SHOWN} == SHOWN
    for ms, text in SHOWN.items():
        seconds = duration_seconds(text)
        assert seconds is not None
        assert 0 <= max(0, ms) / 1000 - seconds < max(1, ms / 1000 / 20)


def test_the_console_shows_the_same() -> None:
    exact = [0, 250, 3_000, 86_408_000, 5_400_001]
    script = f"""
      import {{ duration, exactDuration }} from {json.dumps(CONSOLE.as_uri())};
      console.log(JSON.stringify([{list(SHOWN)}.map(duration), {exact}.map(exactDuration)]));
    """
    done = subprocess.run([NODE, "--input-type=module", "--eval", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [list(SHOWN.values()), [shown_duration(ms) for ms in exact]]


def test_exact_durations() -> None:
    for ms in (0, 250, 3_000, 86_408_000, 5_400_001):
        assert duration_seconds(shown_duration(ms)) == pytest.approx(ms / 1000)
    assert shown_duration(86_408_000) == "1d8s"
