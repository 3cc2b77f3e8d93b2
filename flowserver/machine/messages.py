"""Messages to the machine. A message that names a wait which is over is stale and changes nothing."""

from typing import Final

import msgspec

from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import Json, JsonObject


class Success(msgspec.Struct, frozen=True):
    """A task's good result."""

    output: JsonObject


class Failure(msgspec.Struct, frozen=True):
    """An error with its name, as retry and catch see it, and its cause (free text)."""

    error: str
    cause: str = ""

    @staticmethod
    def of(error: FlowServerError, prefix: str) -> "Failure":
        """The failure of a step whose request was refused: `{prefix}.{code}` and the message."""
        return Failure(f"{prefix}.{error.code}", error.message)


class TooLarge(Failure, frozen=True):
    """A failure because data passes a limit of bytes or of nesting; a task's own retry and catch apply to it."""


Result = Success | Failure


class Start(msgspec.Struct, frozen=True):
    """Begin the execution; its header holds the input."""


class Stop(msgspec.Struct, frozen=True):
    """StopExecution: end it now, with the caller's error and cause."""

    error: str | None = None
    cause: str | None = None


NOT_AWAITED: Final = Stop("FnF.NotAwaited", "the step that started it no longer waits for it")
"""Stops a sub-flow that has lost its owner."""


class DeadlineReached(msgspec.Struct, frozen=True):
    """The execution's time is up."""


class TimerFired(msgspec.Struct, frozen=True):
    """`wake_at` of a wait has come."""

    scope_id: int
    wait_id: int


class TaskReplied(msgspec.Struct, frozen=True):
    """The call or submission of a task attempt has ended."""

    scope_id: int
    wait_id: int
    result: Result
    request_id: str = ""
    """Under which the call is in the logs, for the history; "" if none was made."""


class TaskReported(msgspec.Struct, frozen=True):
    """A task token was redeemed, or a child execution ended.

    A token belongs to one entry of a step, over all its retries: `wait_id` is None. A child belongs to one attempt.
    """

    scope_id: int
    entered_event_id: int
    wait_id: int | None
    result: Result
    request_id: str = ""
    """That of the request that reported, for the history; "" for the end of a child."""
    refuse_too_large: bool = False
    """Refuse an output that the step cannot hold, and let the task wait on; otherwise it fails the attempt."""


class RetryLostCall(msgspec.Struct, frozen=True):
    """Order call number `attempt` of this wait again: it was lost, with its node or on it.

    Several nodes may find the same loss. Only the first message has an effect, because it raises the attempt's number.
    """

    scope_id: int
    wait_id: int
    attempt: int


class Continue(msgspec.Struct, frozen=True):
    """Go on with the scopes that are ready."""


class Rewind(msgspec.Struct, frozen=True):
    """Go back to a step that was entered before, with the `local` that its list had then."""

    scope_id: int
    step_index: int
    local: JsonObject


class Redrive(msgspec.Struct, frozen=True):
    """Go on with an execution that has ended without success, where its steps failed or were aborted.

    The execution has the scopes that it kept, in memory and fitted to the definition that it goes on with. A running
    execution whose steps wait for a redrive has its scopes.
    """

    enters_again: bool = False
    """Whether steps are entered anew, because the definition is another; else calls are made with the same input."""
    input_of: int | None = None
    """The scope whose step gets `input` instead of what its mappings make."""
    input: JsonObject = {}
    rewind: Rewind | None = None
    detail: dict[str, Json] = {}
    """What the event shows of the redrive."""

    @property
    def starts_over(self) -> bool:
        """Whether every open step is left: it is entered anew, or the execution goes back to an earlier one."""
        return self.enters_again or self.rewind is not None


ScopeMessage = TimerFired | TaskReplied | TaskReported | RetryLostCall
"""Messages for one scope; `transitions` says which wait takes which of them."""

Message = Start | Redrive | Stop | DeadlineReached | Continue | ScopeMessage
