"""What the machine asks of the world. Commands are data; they are carried out only after the turn's commit."""

import msgspec

from flowserver.base.json_values import Json, JsonObject
from flowserver.language.graph import FunctionTarget, Pattern, Target
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
    """The token that settles the task later (waitForCallback, or a sync sub-flow's own link back)."""
    idempotency_key: str
    submission_key: str
    """What this attempt submits goes by, such as a message to a queue. A retry submits another."""
    deadline_at: int | None


class SubmitInvocation(msgspec.Struct, frozen=True):
    """Fire and forget: keep this asynchronous call durably with the turn's commit, make it afterwards."""

    target: FunctionTarget
    step_name: str
    event: JsonObject
    invocation_id: str | None
    idempotency_key: str


class CancelInvocation(msgspec.Struct, frozen=True):
    """Nobody waits for this call any more: drop it if it is still under way."""

    scope_id: int
    wait_id: int


class ReportCallback(msgspec.Struct, frozen=True):
    """The execution has ended: tell the task that waits for it, wherever that is."""

    token: str
    result: Result


Command = InvokeTask | SubmitInvocation | CancelInvocation | ReportCallback
