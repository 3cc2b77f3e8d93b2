"""What may go wrong in a world, and how often."""

from dataclasses import dataclass, replace
from enum import Enum


class Fault(Enum):
    """What happens at a commit."""

    NONE = "no fault"
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST = "error, not durable"
    DURABLE = "error, but durable"


class Crash(BaseException):
    """The node is no more. Not an Exception: nothing in the engine may catch it, as nothing survives a power cut."""


@dataclass(frozen=True)
class Disorder:
    """Shares between 0 and 1."""

    faults: tuple[tuple[Fault, float], ...] = (
        (Fault.CRASH_BEFORE, 0.03),
        (Fault.CRASH_AFTER, 0.03),
        (Fault.LOST, 0.02),
        (Fault.DURABLE, 0.05),
    )
    """Per commit."""
    large: int = 30
    """A batch of more items than this fails seldom, since each of its items is then tried alone."""
    conflict: float = 0.06
    """Per batch: that the other node commits between the batch's loading and its saving."""
    declared_dead: float = 0.04
    """Per batch: that the other node takes this living one for dead."""
    duplicate: float = 0.04
    """Per message: that an old one comes again."""
    premature: float = 0.02
    """Per message: that a timer, a deadline or the word of a loss comes that is none."""
    reached: float = 0.5
    """Per call that was under way in a crash: that the function got it."""
    uncancelled: float = 0.5
    """Per cancelled call: that it is answered all the same."""
    sweep: float = 0.02
    """Per batch, beside the sweeps after every fault."""
    deep_check: float = 0.02
    """Per execution and commit: that its rows and its history are read and compared."""
    redrive: float = 0.2
    """Per round: that an execution that ended without success is redriven, with the same definition."""
    interruption: float = 0.05
    """Per case: that it is stopped, or that nothing reaches it before its deadline."""


EAGER = replace(Disorder(), deep_check=1.0)
"""Every execution is compared with its rows and its history after every commit."""
AMBIGUOUS = replace(Disorder(), faults=((Fault.LOST, 0.02), (Fault.DURABLE, 0.08)), large=60, declared_dead=0)
"""Nodes live long, so that what an ambiguous commit made them forget is not found by others."""

CALM = Disorder(
    faults=(), conflict=0, declared_dead=0, duplicate=0, premature=0, sweep=0.2, deep_check=0.02, interruption=0
)  # fmt: skip
"""Nothing goes wrong, so that nobody may find anything to repair."""


def disorder_of(world: int) -> Disorder:
    """What goes wrong in the world of a number, and how closely it is looked at: of ten, two and one are special."""
    return {3: AMBIGUOUS, 6: AMBIGUOUS, 9: EAGER}.get(world % 10, Disorder())
