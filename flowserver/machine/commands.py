"""What the machine asks of the world. Commands are data; they are carried out only after the turn's commit."""

import msgspec

from flowserver.base.json_values import Json, JsonObject
from flowserver.language.graph import Pattern, Target
from flowserver.machine.messages import Result


class InvokeTask(msgspec.Struct, frozen=True):
    """Make the call of a task attempt and answer with `TaskReplied(scope_id, wait_id, …)`."""

    scope_id: int
    wait_id: int
    attempt: int
    step_name: str
    target: Target
    pattern: Pattern
    input: JsonObject
    params: dict[str, Json] | None
    """Evaluated serviceParams."""
    token: str | None
    """The token that settles the task later: on waitForCallback the step's own, which users may hand on; on a sync
    sub-flow or asynchronous invocation one of this attempt, which only the server uses."""
    idempotency_key: str
    submission_key: str
    """What this attempt submits goes by: an invocation, or a message to a queue or topic. A retry submits another."""
    deadline_at: int | None
    asynchronous: bool = False
    """Submit an asynchronous invocation of the function; the answer is only that it was submitted."""


class CancelInvocation(msgspec.Struct, frozen=True):
    """Nobody waits for this call any more: drop it if it is still under way."""

    scope_id: int
    wait_id: int


class StopInvocation(msgspec.Struct, frozen=True):
    """Nobody wants this asynchronous invocation any more, or, without a key, none that the execution has submitted.

    Unlike a call, one may have been submitted long ago, so the wish is stored with the turn's commit.
    """

    submission_key: str | None = None


class ReportCallback(msgspec.Struct, frozen=True):
    """The execution has ended: tell the task that waits for it, wherever that is."""

    token: str
    result: Result


Command = InvokeTask | CancelInvocation | StopInvocation | ReportCallback
