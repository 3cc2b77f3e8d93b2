"""What the outside may tell the machine. A message that names a wait which is over is stale and changes nothing."""

from dataclasses import dataclass

from flowserver.base.json_values import JsonObject


@dataclass(frozen=True, slots=True)
class Success:
    """A task's good result."""

    output: JsonObject


@dataclass(frozen=True, slots=True)
class Failure:
    """An error with its name, as retry and catch see it, and its cause (free text)."""

    error: str
    cause: str = ""


Result = Success | Failure


@dataclass(frozen=True, slots=True)
class Start:
    """Begin the execution; its header holds the input."""


@dataclass(frozen=True, slots=True)
class Stop:
    """StopExecution: end it now, with the caller's words."""

    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """The execution's time is up."""


@dataclass(frozen=True, slots=True)
class TimerFired:
    """`wake_at` of a wait has come."""

    scope_id: int
    wait_id: int


@dataclass(frozen=True, slots=True)
class TaskReplied:
    """The call or submission of a task attempt has ended."""

    scope_id: int
    wait_id: int
    result: Result


@dataclass(frozen=True, slots=True)
class TaskReported:
    """A task token was redeemed, or a child execution ended.

    A token stands for one entry of a step, over all its retries: `wait_id` is None. A child stands for one attempt.
    """

    scope_id: int
    entered_event_id: int
    wait_id: int | None
    result: Result


@dataclass(frozen=True, slots=True)
class Redeliver:
    """The call number `attempt` of this wait is lost, with its node or on it: order it again.

    Whoever finds the loss says so, and several may find it: only the first who says so has an effect.
    """

    scope_id: int
    wait_id: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the scopes that are ready."""


Message = Start | Stop | DeadlineReached | TimerFired | TaskReplied | TaskReported | Redeliver | Continue
