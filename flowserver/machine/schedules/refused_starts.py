"""What a refused start comes to: it is tried again, later each time, and is given up in the end.

A tick is tried until its catch-up window has passed; it counts as missed then. Other starts are tried TRIES_MAX times.
Later starts of the schedule wait meanwhile; other schedules do not.
"""

from typing import Final

from msgspec.structs import replace

from flowserver.machine.schedules.state import Action, Kind, Memory, Refusal, Schedule
from flowserver.machine.schedules.timing import Timing

BACKOFF_MS: Final = (1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000)
"""Pauses after refusals; the last one repeats."""

TRIES_MAX: Final = 10


def refused(schedule: Schedule, action: Action, timing: Timing, refusal: Refusal) -> Schedule:
    """The schedule (`Decision.undecided`) after the start that the turn chose was refused."""
    memory = replace(schedule.memory, refusal=refusal, refusals=schedule.memory.refusals + 1)
    is_tick = action not in memory.buffered and action.kind is Kind.TICK
    if not is_tick and memory.refusals >= TRIES_MAX:
        memory = replace(_without(memory, action, timing), missed=memory.missed + 1, refusals=0)
    pause = BACKOFF_MS[min(max(memory.refusals, 1), len(BACKOFF_MS)) - 1]
    return replace(schedule, memory=memory, wake_at=refusal.refused_at + pause)


def _without(memory: Memory, action: Action, timing: Timing) -> Memory:
    """Without the action, which is buffered, triggered, or the first of a backfill."""
    if action in memory.buffered:
        return replace(memory, buffered=tuple(each for each in memory.buffered if each != action))
    if action in memory.triggers:
        return replace(memory, triggers=tuple(each for each in memory.triggers if each != action))
    first, *others = memory.backfills
    following = timing.next_after(action.at)
    if following is not None and following <= first.to_at:
        others = [replace(first, next_at=following), *others]
    return replace(memory, backfills=tuple(others))
