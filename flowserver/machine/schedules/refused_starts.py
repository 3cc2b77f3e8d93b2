"""What a refused start comes to: it is tried again, later each time, and is given up in the end.

A tick is tried until its catch-up window has passed; it counts as missed then. Other starts are tried TRIES_MAX times,
each counted by itself: the tries of what was refused before it do not count. Only the pauses of ticks go on growing
from tick to tick.
Later starts of the schedule wait meanwhile; other schedules do not.
"""

from typing import Final

from msgspec.structs import replace

from flowserver.machine.schedules.state import Action, Kind, Loss, LossReason, Memory, Refusal, Schedule
from flowserver.machine.schedules.timing import Timing

BACKOFF_MS: Final = (1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000)
"""Pauses after refusals; the last one repeats."""

TRIES_MAX: Final = 10


def refused(schedule: Schedule, action: Action, timing: Timing, refusal: Refusal) -> Schedule:
    """The schedule (`Decision.undecided`) after the start that the turn chose was refused."""
    memory, last = schedule.memory, schedule.memory.refusal
    is_tick = action not in memory.buffered and action.kind is Kind.TICK
    is_again = last is not None and last.kind is action.kind and (is_tick or last.at == action.at)
    memory = replace(memory, refusal=refusal, refusals=memory.refusals + 1 if is_again else 1)
    if not is_tick and memory.refusals >= TRIES_MAX:
        loss = Loss(action.at, LossReason.REFUSED)
        memory = replace(_without(memory, action, timing), missed=memory.missed + 1, refusals=0, last_missed=loss)
    pause = BACKOFF_MS[min(max(memory.refusals, 1), len(BACKOFF_MS)) - 1]
    return replace(schedule, memory=memory, wake_at=refusal.refused_at + pause)


def _without(memory: Memory, action: Action, timing: Timing) -> Memory:
    """Without the action, which is buffered, triggered, or the first of a backfill.

    That need not be the first backfill: those before it may be blocked. Of two that begin alike the first was chosen.
    """
    if action in memory.buffered:
        return replace(memory, buffered=tuple(each for each in memory.buffered if each != action))
    if action in memory.triggers:
        return replace(memory, triggers=tuple(each for each in memory.triggers if each != action))
    backfills = list(memory.backfills)
    index = next(i for i, each in enumerate(backfills) if (each.next_at, each.overlap) == (action.at, action.overlap))
    following = timing.next_after(action.at)
    is_last = following is None or following > backfills[index].to_at
    backfills[index : index + 1] = [] if is_last else [replace(backfills[index], next_at=following)]
    return replace(memory, backfills=tuple(backfills))
