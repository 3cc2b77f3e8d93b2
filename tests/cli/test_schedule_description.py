"""The text of `schedules get`."""

from datetime import UTC, datetime

import pytest

from flowserver.cli.remote.schedule_description import described
from flowserver.client.results import Schedule

AT = "2026-01-02T00:00:00.000Z"


@pytest.mark.parametrize(
    ("waiting", "kinds", "shown"),
    [
        (1, ["backfill"], "1 backfill (a backfill is a range of ticks), queued"),
        (2, ["tick", "trigger"], "2 starts, queued"),
        (3, ["tick", "backfill", "backfill"], "1 start and 2 backfills (a backfill is a range of ticks), queued"),
        (12, ["tick"] * 10, "12 starts and backfills (a backfill is a range of ticks), queued"),
    ],
)
def test_starts_and_backfills_that_wait_are_counted(waiting: int, kinds: list[str], shown: str) -> None:
    queue = [{"time": AT, "kind": kind, "until": None} for kind in kinds]
    schedule = Schedule("etl", "nightly", "@every 5m", time_zone="UTC", waiting=waiting, queue=queue)
    lines = [line.split(maxsplit=1) for line in described(schedule, datetime(2026, 1, 2, tzinfo=UTC)).splitlines()]
    assert ["waiting:", shown] in lines
