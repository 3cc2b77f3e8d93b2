"""The life of an asynchronous invocation: the state that each change leads to.

Pure: time is an argument. The next action follows from the state alone, so there are no commands. In `Running` the
function is called, `Retrying` waits until `wake_at`, in `Stopping` the call is dropped, and the result of an ended
invocation goes to its `destination`.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from flowserver.machine.invocations.states import (
    LEGAL,
    STOPPED_ERROR,
    InvocationEvent,
    InvocationSettings,
    InvocationState,
    InvocationStatus,
)

_S = InvocationStatus

FIRST_PAUSE_MS: Final = 500
"""The pause before the first retry; each further one is twice as long."""


# What happens


class Dequeued(msgspec.Struct, frozen=True):
    """It is first in its queue and there is a free slot."""


class FunctionUnavailable(msgspec.Struct, frozen=True):
    """The function is not there, or would not start."""

    error: str
    cause: str


class AttemptBegan(msgspec.Struct, frozen=True):
    """A call is about to be made: the first, a retry, or a repetition of a call that was lost with its node."""


class AttemptSucceeded(msgspec.Struct, frozen=True):
    """The function has answered; `result` is None for more bytes than are kept."""

    result: bytes | None
    duration_ms: int


class AttemptFailed(msgspec.Struct, frozen=True):
    """The attempt has failed."""

    error: str
    cause: str
    duration_ms: int


class StopAsked(msgspec.Struct, frozen=True):
    """A caller has asked to stop it."""


class CallEnded(msgspec.Struct, frozen=True):
    """The call of an invocation that is being stopped is dropped, and its preStop hook, if any, has been called."""


InvocationMessage = (
    Dequeued | FunctionUnavailable | AttemptBegan | AttemptSucceeded | AttemptFailed | StopAsked | CallEnded
)


def submitted(settings: InvocationSettings, now_ms: int) -> InvocationState:
    """An invocation that has just been accepted."""
    event = InvocationEvent(_S.ENQUEUED, now_ms)
    return InvocationState(_S.ENQUEUED, now_ms, settings, (event,))


def advance_invocation(state: InvocationState, message: InvocationMessage, now_ms: int) -> InvocationState:
    """The state after a change. A change that comes too late, or twice, has no effect: it returns the same object."""
    match message, state.status:
        case Dequeued(), _S.ENQUEUED:
            return _take(state, now_ms)
        case FunctionUnavailable(error, cause), _S.DEQUEUED:
            return _end(state, _S.INVALID, now_ms, error, cause)
        case AttemptBegan(), _S.DEQUEUED | _S.RETRYING | _S.RUNNING:
            return _begin(state, now_ms)
        case AttemptSucceeded(result, duration_ms), _S.RUNNING:
            return _end(replace(state, result=result, duration_ms=duration_ms), _S.SUCCEEDED, now_ms)
        case AttemptFailed(error, cause, duration_ms), _S.RUNNING:
            return _fail(replace(state, duration_ms=duration_ms), now_ms, error, cause)
        case StopAsked(), _S.RUNNING:
            return _move(state, _S.STOPPING, now_ms)
        case StopAsked(), _S.ENQUEUED | _S.DEQUEUED | _S.RETRYING:
            return _stop(_move(replace(state, wake_at=None), _S.STOPPING, now_ms), now_ms)
        case CallEnded() | AttemptSucceeded() | AttemptFailed(), _S.STOPPING:
            return _stop(replace(state, duration_ms=_run_ms(state, now_ms)), now_ms)
    return state


def _move(state: InvocationState, target: InvocationStatus, now_ms: int, detail: str = "") -> InvocationState:
    assert (state.status, target) in LEGAL, f"there is no way from {state.status} to {target}"
    return replace(state, status=target, events=(*state.events, InvocationEvent(target, now_ms, detail)))


def _take(state: InvocationState, now_ms: int) -> InvocationState:
    """Start the first attempt. The limit on age counts until now; retries do not check it."""
    taken = _move(state, _S.DEQUEUED, now_ms)
    waited_ms = now_ms - state.created_at
    if waited_ms <= state.settings.age_seconds * 1000:
        return taken
    cause = f"it waited for {waited_ms} ms, longer than the {state.settings.age_seconds} s that it was good for"
    return _end(taken, _S.EXPIRED, now_ms, "FC.InvocationExpired", cause)


def _begin(state: InvocationState, now_ms: int) -> InvocationState:
    if state.status is not _S.RUNNING:
        state = _move(state, _S.RUNNING, now_ms)
    return replace(state, attempt=state.attempt + 1, wake_at=None)


def _fail(state: InvocationState, now_ms: int, error: str, cause: str) -> InvocationState:
    if state.retries >= state.settings.retries:
        return _end(state, _S.FAILED, now_ms, error, cause)
    retries = state.retries + 1
    wake_at = now_ms + FIRST_PAUSE_MS * 2 ** (retries - 1)
    waiting = _move(state, _S.RETRYING, now_ms, error)
    return replace(waiting, retries=retries, wake_at=wake_at, error=error, cause=cause)


def _run_ms(state: InvocationState, now_ms: int) -> int:
    """How long the stopped attempt has run."""
    began_ms = max((event.time_ms for event in state.events if event.status is _S.RUNNING), default=now_ms)
    return max(0, now_ms - began_ms)


def _stop(state: InvocationState, now_ms: int) -> InvocationState:
    return _end(state, _S.STOPPED, now_ms, STOPPED_ERROR, "the invocation was stopped")


def _end(
    state: InvocationState, status: InvocationStatus, now_ms: int, error: str | None = None, cause: str | None = None
) -> InvocationState:
    ended = _move(state, status, now_ms, error or "")
    return replace(ended, ended_at=now_ms, wake_at=None, error=error, cause=cause)
