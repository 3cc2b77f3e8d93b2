"""Messages that should not arrive: old messages again, and false timers, deadlines and losses."""

from random import Random
from typing import Any

from flowserver.engine.commit.batch_items import Envelope
from flowserver.machine.messages import Continue, DeadlineReached, RetryLostCall, Stop, TaskReported, TimerFired
from tests.simulation.fault_rates import FaultRates
from tests.simulation.node import InboxItem
from tests.simulation.witness import Witness
from tests.support.clock import ManualClock

SPENT_MAX = 200


class StrayMessages:
    """Remembers delivered messages, and makes stray messages out of them for other batches."""

    def __init__(self, witness: Witness, clock: ManualClock, random: Random, fault_rates: FaultRates) -> None:
        self._witness = witness
        self._clock = clock
        self._random = random
        self._fault_rates = fault_rates
        self._spent: list[Envelope] = []

    def remember(self, envelope: Envelope) -> None:
        """Remember a delivered message, unless it starts an unnamed execution: a client sends that only once."""
        if envelope.new is None or not envelope.new.name_is_unique:
            self._spent.append(envelope)

    def draw(self) -> list[InboxItem]:
        """Stray messages for a batch; usually none."""
        duplicate = self._duplicate() if self._random.random() < self._fault_rates.duplicate else None
        premature = self._premature() if self._random.random() < self._fault_rates.premature else None
        return [parcel for parcel in (duplicate, premature) if parcel is not None]

    def _duplicate(self) -> InboxItem | None:
        """An earlier message again. A report is repeated only where it cannot settle a later attempt."""
        if not self._spent:
            return None
        self._spent = self._spent[-SPENT_MAX:]
        envelope = self._random.choice(self._spent)
        if isinstance(envelope.message, TaskReported):
            return None  # simulated clients repeat these themselves
        # A copy of a stop that comes after a redrive stops the execution again: stops have no identity.
        return InboxItem(envelope, is_harmless=not isinstance(envelope.message, (Continue, Stop)))

    def _premature(self) -> InboxItem | None:
        """A timer, deadline or loss that is not due."""
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
        return InboxItem(Envelope(execution.execution_id, self._random.choice(messages)), is_harmless=True)


def may_come_twice(envelope: Envelope) -> bool:
    """Whether another node may send the same message at the same time."""
    return envelope.new is None and envelope.settles is None and not isinstance(envelope.message, TaskReported)


def old_reports_apart(parcels: list[InboxItem]) -> list[InboxItem]:
    """Leave out copies of a report that could settle a later attempt, if that attempt begins in this batch."""
    told = [parcel for parcel in parcels if not is_old_report(parcel)]
    ids = {parcel.item.execution_id for parcel in told if isinstance(parcel.item, Envelope)}
    for parcel in parcels:
        if is_old_report(parcel) and isinstance(parcel.item, Envelope) and parcel.item.execution_id not in ids:
            told.append(parcel)
    return told


def is_redrive(parcel: InboxItem) -> bool:
    """Whether it redrives an execution. The rows that the execution has kept are read in the same transaction."""
    return isinstance(parcel.item, Envelope) and parcel.item.redrive is not None


def is_old_report(parcel: InboxItem) -> bool:
    """Whether it repeats a settled report. If another attempt begins first, the report would settle that one."""
    return parcel.is_harmless and isinstance(parcel.item, Envelope) and isinstance(parcel.item.message, TaskReported)
