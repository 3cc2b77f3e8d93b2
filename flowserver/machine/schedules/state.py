"""A schedule and what it remembers; a turn gives a changed copy of it. Instants are ms since the epoch."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

RECENT_MAX: Final = 10
"""Runs that a schedule remembers. While they run, they are those that overlap policies consider."""


class Overlap(StrEnum):
    """What a tick does while an execution of the schedule runs."""

    SKIP = "Skip"
    BUFFER_ONE = "BufferOne"
    BUFFER_ALL = "BufferAll"
    CANCEL_OTHER = "CancelOther"
    TERMINATE_OTHER = "TerminateOther"
    ALLOW_ALL = "AllowAll"


STOPPING: Final = (Overlap.CANCEL_OTHER, Overlap.TERMINATE_OTHER)


class Kind(StrEnum):
    """Why an execution starts."""

    TICK = "tick"
    TRIGGER = "trigger"
    BACKFILL = "backfill"


class Action(Struct, frozen=True):
    """A start that waits, or is to be decided on: the instant that it is for, and its overlap policy."""

    at: int
    kind: Kind
    overlap: Overlap


class Backfill(Struct, frozen=True):
    """A range of ticks that are run as if they were due now; `next_at` is the first that is left."""

    next_at: int
    to_at: int
    overlap: Overlap


class Run(Struct, frozen=True):
    """An execution that the schedule started. `is_judged` once a turn has seen its end."""

    at: int
    kind: Kind
    execution_id: str
    name: str
    started_at: int
    is_judged: bool = False


class Refusal(Struct, frozen=True):
    """A start that was refused: when, for which instant, the error, and why it was to start."""

    refused_at: int
    at: int
    code: str
    message: str
    kind: Kind = Kind.TICK
    """Older rows have none."""


class LossReason(StrEnum):
    """Why a scheduled run, a trigger or a run of a backfill started nothing."""

    LATE = "late"
    """It was older than the catch-up window."""
    REFUSED = "refused"
    """Its start was refused until it was given up."""
    OVERLAP = "overlap"
    """The overlap policy dropped it."""
    DONE = "done"
    """It had an execution already."""
    PAUSED = "paused"
    """It was buffered when the schedule was paused."""


class Loss(Struct, frozen=True):
    """A run that was missed or skipped: the instant that it was for."""

    at: int
    reason: LossReason


class Memory(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a schedule remembers between turns. Older nodes read a row whose newer fields have defaults."""

    triggers: tuple[Action, ...] = ()
    """Not yet decided on."""
    buffered: tuple[Action, ...] = ()
    """They wait for the executions that run."""
    backfills: tuple[Backfill, ...] = ()
    recent: tuple[Run, ...] = ()
    """Newest last."""
    refusal: Refusal | None = None
    """The last one."""
    refusals: int = 0
    """One after the other, without a start in between."""
    started: int = 0
    missed: int = 0
    """Ticks that were older than the catch-up window, and starts that were given up after refusals."""
    skipped: int = 0
    """Ticks that the overlap policy dropped, and those that had an execution already."""
    last_missed: Loss | None = None
    last_skipped: Loss | None = None


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule of a flow; `payload` is the JSON text of an object, `""` for none."""

    schedule_id: str
    flow_id: str
    flow_name: str
    name: str
    description: str = ""
    expression: str
    time_zone: str = "UTC"
    payload: str = ""
    qualifier: str = ""
    """The version or alias of the flow that executions run; `""` for the current definition."""
    is_enabled: bool = True
    note: str = ""
    """Why it is paused, or was resumed."""
    overlap: Overlap = Overlap.ALLOW_ALL
    catch_up_seconds: int = 60
    pauses_on_failure: bool = False
    actions_left: int | None = None
    """Ticks that may still start an execution; None for any number."""
    anchor_at: int
    """Where `@every` counts from."""
    next_at: int | None
    """The next tick; None while the schedule is paused, or when it has no more."""
    wake_at: int | None
    """The one reason to wake up: when a turn is due; None if nothing is to be done."""
    version: int = 0
    created_at: int
    modified_at: int
    memory: Memory = Memory()
