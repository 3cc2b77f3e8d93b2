"""Commands of the machine to the engine. They are data; the engine carries them out only after the turn's commit.

No row holds a command. If the node dies after the commit, recovery finds the reason for it in other rows: the scope
that waits for the call, the asynchronous invocation or sub-flow that the commit marked, the callback that the header
owes.
"""

import msgspec

from flowserver.base.derived_ids import derived_id
from flowserver.base.json_values import Json, JsonObject
from flowserver.language.graph import ChildLifecycle, Pattern, Target
from flowserver.machine.messages import Result


class Caller(msgspec.Struct, frozen=True):
    """The execution that a command belongs to, as its functions see it."""

    execution_id: str
    flow_name: str
    execution_name: str


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
    started_event_id: int
    """The event that began the attempt, the same when its call is made again after a loss."""
    idempotency_key: str
    submission_key: str
    """The key of the invocation or message that this attempt submits. A retry submits another."""
    deadline_at: int | None
    child_lifecycle: ChildLifecycle | None = None
    """As the step has it; None for the server's setting."""
    asynchronous: bool = False
    """Submit an asynchronous invocation of the function; the answer is only that it was submitted."""
    is_retry: bool = False
    """Whether an attempt of the same entry of the step has failed before."""
    child_wait: int | None = None
    """Of a step that waits for its sub-flow: see `Scope.child_wait`."""

    @property
    def continues_child(self) -> bool:
        """Whether the call continues the execution that an earlier attempt started, instead of starting one."""
        return self.child_wait not in (None, self.wait_id)

    @property
    def submission_request_id(self) -> str:
        """The request id of the invocation that this attempt submits, which its calls have."""
        return derived_id(self.submission_key)


class CancelInvocation(msgspec.Struct, frozen=True):
    """Drop this call if it is still under way: no scope waits for it any more."""

    scope_id: int
    wait_id: int
    unless_begun: bool = False
    """Drop it only while it waits for a slot. A report has ended the wait early, and a function that has been called
    may go on after its report."""


class StopInvocation(msgspec.Struct, frozen=True):
    """Stop this asynchronous invocation or, without a key, all that the execution has submitted, and the sub-flows that
    it owns: none is needed now.

    An invocation, unlike a call, may have been submitted long ago, so this command is stored with the turn's commit.
    """

    submission_key: str | None = None


class StopSubFlow(msgspec.Struct, frozen=True):
    """Stop the sub-flow that this wait owns, if it owns one. Stored with the turn's commit, like `StopInvocation`."""

    wait_id: int


class ReportCallback(msgspec.Struct, frozen=True):
    """The execution has ended: report it to the task that waits for it, on any server."""

    token: str
    result: Result


Command = InvokeTask | CancelInvocation | StopInvocation | StopSubFlow | ReportCallback
