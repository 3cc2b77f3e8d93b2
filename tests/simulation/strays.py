"""What comes though it should not: old messages again, and timers, deadlines and losses that are none."""

from random import Random
from typing import Any

from flowserver.engine.commit.items import Envelope
from flowserver.machine.messages import Continue, DeadlineReached, RetryLostCall, TaskReported, TimerFired
from tests.simulation.disorder import Disorder
from tests.simulation.node import Parcel
from tests.simulation.witness import Witness
from tests.support.clock import ManualClock

SPENT_MAX = 200


class Strays:
    """Remembers what was told, and makes of it what a batch may hold besides."""

    def __init__(self, witness: Witness, clock: ManualClock, random: Random, disorder: Disorder) -> None:
        self._witness = witness
        self._clock = clock
        self._random = random
        self._disorder = disorder
        self._spent: list[Envelope] = []

    def was_told(self, envelope: Envelope) -> None:
        """It may come again, unless it is a start whose name nobody else has: that is promised to come once."""
        if envelope.new is None or not envelope.new.name_is_unique:
            self._spent.append(envelope)

    def some(self) -> list[Parcel]:
        """Mostly nothing."""
        duplicate = self._duplicate() if self._random.random() < self._disorder.duplicate else None
        premature = self._premature() if self._random.random() < self._disorder.premature else None
        return [parcel for parcel in (duplicate, premature) if parcel is not None]

    def _duplicate(self) -> Parcel | None:
        """Something that has been told already; a report only where it cannot mean a later attempt."""
        if not self._spent:
            return None
        self._spent = self._spent[-SPENT_MAX:]
        envelope = self._random.choice(self._spent)
        if isinstance(envelope.message, TaskReported):
            return None  # clients send theirs again by themselves
        return Parcel(envelope, is_harmless=not isinstance(envelope.message, Continue))

    def _premature(self) -> Parcel | None:
        """A timer, a deadline or a loss that is none yet."""
        if not self._witness.runs:
            return None
        execution = self._random.choice(self._witness.all).execution
        now = self._clock.now_ms()
        messages: list[Any] = [DeadlineReached()] if execution.deadline_at > now else []
        for scope in execution.scopes.values():
            messages.append(RetryLostCall(scope.scope_id, scope.wait_id, scope.attempt - 1))
            if scope.wake_at is None or scope.wake_at > now:
                messages.append(TimerFired(scope.scope_id, scope.wait_id))
        if not messages:
            return None
        return Parcel(Envelope(execution.execution_id, self._random.choice(messages)), is_harmless=True)


def may_come_twice(envelope: Envelope) -> bool:
    """Whether another node may tell the same at the same time."""
    return envelope.new is None and envelope.settles is None and not isinstance(envelope.message, TaskReported)


def old_reports_apart(parcels: list[Parcel]) -> list[Parcel]:
    """A copy of a report that can mean a later attempt, should one begin in this very batch, is left out."""
    told = [parcel for parcel in parcels if not is_old_report(parcel)]
    ids = {parcel.item.execution_id for parcel in told if isinstance(parcel.item, Envelope)}
    for parcel in parcels:
        if is_old_report(parcel) and isinstance(parcel.item, Envelope) and parcel.item.execution_id not in ids:
            told.append(parcel)
    return told


def is_redrive(parcel: Parcel) -> bool:
    """Whether it redrives an execution: what that has kept is read in the same transaction."""
    return isinstance(parcel.item, Envelope) and parcel.item.redrive is not None


def is_old_report(parcel: Parcel) -> bool:
    """Whether it reports once more what was settled; if another attempt begins first, it would mean that one."""
    return parcel.is_harmless and isinstance(parcel.item, Envelope) and isinstance(parcel.item.message, TaskReported)
