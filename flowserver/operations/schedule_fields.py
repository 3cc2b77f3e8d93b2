"""The fields of a schedule that users set: their rules, and what a change of them means."""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from msgspec.structs import replace

from flowserver.base.errors import InvalidArgument
from flowserver.base.json_parameters import parse_input
from flowserver.base.limits import Limits
from flowserver.engine.schedules.timing_cache import zone_of
from flowserver.machine.schedules.deciding import paused
from flowserver.machine.schedules.expression_error import ExpressionRejected
from flowserver.machine.schedules.start_input import input_bytes_max
from flowserver.machine.schedules.state import Overlap, Schedule
from flowserver.machine.schedules.timing import Timing, read_timing
from flowserver.machine.versions.routing import is_qualifier
from flowserver.operations.text_rules import check_no_nul

DESCRIPTION_CHARACTERS_MAX = 4_096
NOTE_CHARACTERS_MAX = 1_024
CATCH_UP_SECONDS_MIN = 10
CATCH_UP_SECONDS_MAX = 31_536_000
ACTIONS_MAX = 1_000_000_000
ZONE_CHARACTERS_MAX = 64


@dataclass(frozen=True, slots=True)
class Limited:
    """How many ticks may still start an execution; None for any number."""

    actions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChange:
    """Fields of a schedule; None leaves a field as it is, or at its default. `payload` is JSON text, "" for none."""

    expression: str | None = None
    time_zone: str | None = None
    description: str | None = None
    payload: str | None = None
    is_enabled: bool | None = None
    note: str | None = None
    overlap: Overlap | None = None
    catch_up_seconds: int | None = None
    pauses_on_failure: bool | None = None
    limited: Limited | None = None
    qualifier: str | None = None
    """A version or an alias of the flow, which is looked up by every start; "" for the current definition."""


def overlap_of(text: str, field: str) -> Overlap:
    """The policy of that name; raises InvalidArgument."""
    try:
        return Overlap(text)
    except ValueError:
        raise InvalidArgument(f"{field} must be one of {', '.join(Overlap)}") from None


def check_fields(change: ScheduleChange, limits: Limits) -> None:
    """Raises InvalidArgument for a field whose value is out of its bounds; expressions are checked by `changed`."""
    _check_text("Description", change.description, DESCRIPTION_CHARACTERS_MAX)
    _check_text("Note", change.note, NOTE_CHARACTERS_MAX)
    _check_text("TimeZone", change.time_zone, ZONE_CHARACTERS_MAX)
    if change.qualifier and not is_qualifier(change.qualifier):
        raise InvalidArgument("Qualifier must be the name of an alias, the number of a version, or LATEST")
    if change.payload is not None:
        payload = parse_input(change.payload, limits, "Payload")
        check_no_nul("Payload", change.payload)
        size = len(change.payload.encode("utf-8", "surrogatepass"))
        if size > limits.schedule_payload_bytes_max:
            most = limits.schedule_payload_bytes_max
            raise InvalidArgument(f"Payload holds {size} bytes; the limit schedule_payload_bytes_max is {most}")
        size, most = input_bytes_max(payload), limits.step_data_bytes_max
        if size > most:
            raise InvalidArgument(f"Payload makes inputs of {size} bytes; the limit step_data_bytes_max is {most}")
    seconds = change.catch_up_seconds
    if seconds is not None and not CATCH_UP_SECONDS_MIN <= seconds <= CATCH_UP_SECONDS_MAX:
        raise InvalidArgument(f"CatchUpSeconds must be {CATCH_UP_SECONDS_MIN} to {CATCH_UP_SECONDS_MAX}")
    actions = None if change.limited is None else change.limited.actions
    if actions is not None and not 0 <= actions <= ACTIONS_MAX:
        raise InvalidArgument(f"RemainingActions must be 0 to {ACTIONS_MAX}")


def changed(schedule: Schedule, change: ScheduleChange, now_ms: int) -> Schedule:
    """The schedule with its changes, and when its next turn is due. Raises InvalidArgument (expression, time zone)."""
    fields: dict[str, Any] = {
        "description": change.description,
        "payload": change.payload,
        "qualifier": change.qualifier,
        "expression": change.expression,
        "time_zone": change.time_zone,
        "note": change.note,
        "overlap": change.overlap,
        "catch_up_seconds": change.catch_up_seconds,
        "pauses_on_failure": change.pauses_on_failure,
        "is_enabled": change.is_enabled,
    }
    after = replace(schedule, **{name: value for name, value in fields.items() if value is not None})
    if change.limited is not None:
        after = replace(after, actions_left=change.limited.actions)
    timing = checked_timing(after)
    if after == schedule:
        return schedule
    is_anew = (after.expression, after.time_zone) != (schedule.expression, schedule.time_zone)
    is_anew = is_anew or (after.is_enabled and not schedule.is_enabled)
    if is_anew:
        after = replace(after, anchor_at=now_ms, next_at=None)
        timing = checked_timing(after)
    if not after.is_enabled:
        after = paused(after, after.note)
    elif after.actions_left == 0:
        after = replace(after, next_at=None)
    elif after.next_at is None:
        after = replace(after, next_at=timing.next_after(now_ms))
    memory = after.memory
    has_work = memory.triggers or memory.buffered or memory.backfills
    return replace(after, modified_at=now_ms, wake_at=now_ms if has_work else after.next_at)


def checked_timing(schedule: Schedule) -> Timing:
    """The schedule's timing; raises InvalidArgument, which names each field that is wrong."""
    zone: tzinfo = UTC
    mistakes = []
    try:
        zone = zone_of(schedule.time_zone)
    except ExpressionRejected as error:
        mistakes.append(f"TimeZone: {error}")
    try:
        timing = read_timing(schedule.expression, zone, schedule.anchor_at)
    except ExpressionRejected as error:
        mistakes.append(f"CronExpression: {error}")
    if mistakes:
        raise InvalidArgument("; ".join(mistakes))
    return timing


def _check_text(name: str, text: str | None, characters_max: int) -> None:
    if text is None:
        return
    if len(text) > characters_max:
        raise InvalidArgument(f"{name} must have at most {characters_max} characters")
    check_no_nul(name, text)
