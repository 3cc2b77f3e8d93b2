"""One schedule for people: what `get`, `create` and `update` print. Its instants are shown in its own time zone."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from flowserver.cli.remote.times import shown_in_zone
from flowserver.cli.tables import aligned
from flowserver.client.results import Json, Schedule

_BACKFILL: Final = "a backfill is a range of ticks"


def described(schedule: Schedule, now: datetime) -> str:
    """Its fields, the starts that wait, its next ticks and its last executions."""
    rows = [
        ["schedule:", schedule.path],
        ["when:", f"{schedule.cron_expression}  {schedule.time_zone}"],
        ["state:", "enabled" if schedule.enabled else "paused"],
        ["note:", schedule.note],
        ["overlap:", schedule.overlap],
        ["started:", f"{schedule.started}, {schedule.missed} missed, {schedule.skipped} skipped"],
        ["last missed:", _lost(schedule.last_missed, schedule, now)],
        ["last skipped:", _lost(schedule.last_skipped, schedule, now)],
        ["waiting:", _waiting(schedule)],
    ]
    return "\n".join([aligned([row for row in rows if row[1]]), *_times(schedule, now)])


REASONS: Final = {
    "late": "it was older than the catch-up window",
    "refused": "its start was refused",
    "overlap": "an execution was running",
    "done": "it had an execution already",
    "paused": "the schedule was paused",
}


def _lost(loss: Json | None, schedule: Schedule, now: datetime) -> str:
    if loss is None:
        return ""
    reason = REASONS.get(loss["reason"], loss["reason"])
    return f"the run of {shown_in_zone(loss['time'], now, schedule.time_zone)}: {reason}"


def running(schedule: Schedule) -> list[str]:
    """Those of its recent executions that run, the oldest first."""
    names = [run["executionName"] for run in schedule.recent if run["status"] == "Running"]
    return [f"{schedule.flow_name}/{name}" for name in reversed(names)]


def queued(schedule: Schedule) -> str:
    """That a start of it waits, and for which executions."""
    first, *others = running(schedule) or [""]
    return f"queued behind {first}{f' and {len(others)} more' if others else ''}" if first else "queued"


def _waiting(schedule: Schedule) -> str:
    """Starts and whole backfills that wait, and for what; nothing if none does."""
    if not schedule.waiting:
        return ""
    return f"{_counted(schedule)}, {queued(schedule)}"


def _counted(schedule: Schedule) -> str:
    """How many starts and how many backfills; only the sum if there are more than the server lists."""
    if len(schedule.queue) < schedule.waiting:
        return f"{schedule.waiting} starts and backfills ({_BACKFILL})"
    backfills = sum(each["kind"] == "backfill" for each in schedule.queue)
    starts = schedule.waiting - backfills
    parts = [f"{starts} start{'' if starts == 1 else 's'}"] if starts else []
    if backfills:
        parts.append(f"{backfills} backfill{'' if backfills == 1 else 's'} ({_BACKFILL})")
    return " and ".join(parts)


def _times(schedule: Schedule, now: datetime) -> Iterator[str]:
    def shown(instant: str | None) -> str:
        return shown_in_zone(instant, now, schedule.time_zone)

    if schedule.queue:
        yield "queue:"
        yield aligned(
            [
                [f"  {shown(each['time'])}", each["kind"], f"until {shown(each['until'])}" if each["until"] else ""]
                for each in schedule.queue
            ]
        )
    yield "next:"
    yield from (f"  {shown(each)}" for each in schedule.next_times) if schedule.enabled else ["  paused"]
    if schedule.recent:
        yield "last:"
        yield aligned(
            [[f"  {shown(run['time'])}", run["executionName"], str(run["status"])] for run in schedule.recent]
        )
