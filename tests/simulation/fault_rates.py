"""The faults that are injected into a world, and their rates."""

from dataclasses import dataclass, replace
from enum import Enum


class Fault(Enum):
    """A fault at a commit."""

    NONE = "no fault"
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST = "error, not durable"
    DURABLE = "error, but durable"


class Crash(BaseException):
    """The node crashes. Not an `Exception`, because no handler in the engine may catch a power cut."""


@dataclass(frozen=True)
class FaultRates:
    """Fault rates between 0 and 1."""

    faults: tuple[tuple[Fault, float], ...] = (
        (Fault.CRASH_BEFORE, 0.03),
        (Fault.CRASH_AFTER, 0.03),
        (Fault.LOST, 0.02),
        (Fault.DURABLE, 0.05),
    )
    """Per commit."""
    large: int = 30
    """Larger batches fail seldom, because each of their items is then tried alone."""
    conflict: float = 0.06
    """Per batch: the other node commits between the batch's loading and its saving."""
    declared_dead: float = 0.04
    """Per batch: the other node declares this running node dead."""
    duplicate: float = 0.04
    """Per message: an old message is delivered again."""
    premature: float = 0.02
    """Per message: a false timer, deadline or lost-call message is delivered."""
    reached: float = 0.5
    """Per call that was running at a crash: the function received it."""
    uncancelled: float = 0.5
    """Per cancelled call: its reply arrives nevertheless."""
    sweep: float = 0.02
    """Per batch, in addition to the sweep after each fault."""
    deep_check: float = 0.02
    """Per execution and commit: its rows and history are read and compared."""
    redrive: float = 0.2
    """Per round: an execution that ended without success is redriven with the same definition."""
    interruption: float = 0.05
    """Per case: it is stopped, or cut off from all messages until its deadline."""


EAGER = replace(FaultRates(), deep_check=1.0)
"""Compares every execution with its rows and its history after every commit."""
AMBIGUOUS = replace(FaultRates(), faults=((Fault.LOST, 0.02), (Fault.DURABLE, 0.08)), large=60, declared_dead=0)
"""Nodes live long, so other nodes do not repair what a node forgot after an ambiguous commit."""

CALM = FaultRates(
    faults=(), conflict=0, declared_dead=0, duplicate=0, premature=0, sweep=0.2, deep_check=0.02, interruption=0
)  # fmt: skip
"""No faults, so a sweep must find nothing to repair."""


def fault_rates_of(world: int) -> FaultRates:
    """The fault rates of a world and the depth of its checks: of ten worlds, two are eager and one is lingering."""
    return {3: AMBIGUOUS, 6: AMBIGUOUS, 9: EAGER}.get(world % 10, FaultRates())
