"""The states of an asynchronous invocation (a Serverless Task), the transitions between them, and its stored data.

`TRANSITIONS` is the only table of transitions: `invocations` makes no other, and the diagram in the documentation is
generated from it. A change names the state that it starts from, so of an outcome, a stop and a take-over that race,
only the first has an effect.
"""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

RETRIES_DEFAULT: Final = 3
RETRIES_MAX: Final = 8
AGE_SECONDS_DEFAULT: Final = 86_400
AGE_SECONDS_MAX: Final = 604_800
STOPPED_ERROR: Final = "FC.InvocationStopped"


class InvocationStatus(StrEnum):
    """The ten states, in the words of Function Compute."""

    ENQUEUED = "Enqueued"
    """It has been accepted, and waits in the line of its function."""
    DEQUEUED = "Dequeued"
    """Its turn has come; what it needs is looked at."""
    RUNNING = "Running"
    """The function is being called."""
    RETRYING = "Retrying"
    """An attempt has failed, and the next one follows after a pause."""
    STOPPING = "Stopping"
    """A caller has stopped it; its call is being dropped and the function's preStop hook called."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"
    EXPIRED = "Expired"
    """It was too old when its turn came: the function was not called."""
    INVALID = "Invalid"
    """The function could not be called at all: it is gone, or would not start."""


_S = InvocationStatus
ENDED: Final = frozenset({_S.SUCCEEDED, _S.FAILED, _S.STOPPED, _S.EXPIRED, _S.INVALID})


class Transition(NamedTuple):
    """A transition from one state to another; `source` is None for a new invocation."""

    source: InvocationStatus | None
    target: InvocationStatus
    when: str


TRANSITIONS: Final = (
    Transition(None, _S.ENQUEUED, "accepted"),
    Transition(_S.ENQUEUED, _S.DEQUEUED, "its turn has come"),
    Transition(_S.DEQUEUED, _S.EXPIRED, "waited for too long"),
    Transition(_S.DEQUEUED, _S.INVALID, "function gone, or does not start"),
    Transition(_S.DEQUEUED, _S.RUNNING, "checks passed"),
    Transition(_S.RUNNING, _S.SUCCEEDED, "returned"),
    Transition(_S.RUNNING, _S.RETRYING, "failed, retries left"),
    Transition(_S.RUNNING, _S.FAILED, "failed, retries used up"),
    Transition(_S.RETRYING, _S.RUNNING, "next attempt"),
    Transition(_S.ENQUEUED, _S.STOPPING, "stop"),
    Transition(_S.DEQUEUED, _S.STOPPING, "stop"),
    Transition(_S.RUNNING, _S.STOPPING, "stop"),
    Transition(_S.RETRYING, _S.STOPPING, "stop"),
    Transition(_S.STOPPING, _S.STOPPED, "the call has ended"),
)
LEGAL: Final = frozenset((each.source, each.target) for each in TRANSITIONS)
"""The same, without the words."""


class InvocationSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of one invocation, as configured when it was submitted."""

    retries: int = RETRIES_DEFAULT
    """Retries after a failed attempt, 0 to 8."""
    age_seconds: int = AGE_SECONDS_DEFAULT
    """How long it may wait for its turn."""
    on_success: str | None = None
    """Where its result goes; `machine.destinations` reads it."""
    on_failure: str | None = None


class InvocationEvent(msgspec.Struct, frozen=True, array_like=True):
    """A transition that happened: the state that was entered, when (ms), and a message, which may be ""."""

    status: InvocationStatus
    time_ms: int
    detail: str = ""


class InvocationState(msgspec.Struct, frozen=True):
    """Everything that determines the next state of an invocation. Instants in ms."""

    status: InvocationStatus
    created_at: int
    settings: InvocationSettings
    events: tuple[InvocationEvent, ...]
    attempt: int = 0
    """Calls begun, those that were lost with their node included."""
    retries: int = 0
    """Retries begun or to come."""
    wake_at: int | None = None
    """When the pause before the next attempt is over."""
    ended_at: int | None = None
    result: bytes | None = None
    error: str | None = None
    cause: str | None = None
    duration_ms: int | None = None
    """How long the last attempt took."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in ENDED

    @property
    def destination(self) -> str | None:
        """The destination of the result once the invocation has ended; None for nowhere."""
        return self.settings.on_success if self.status is _S.SUCCEEDED else self.settings.on_failure
