"""Every way in which an execution and its scopes change, as data. Nothing takes another way.

Theory of operation. An execution is `Running` until it ends; a redrive makes an execution run again
that ended without success (`STATUS_TRANSITIONS`). While it runs, each scope
waits for exactly one thing, its `WaitKind`. The scope's row stores it, so after a crash the rows alone say what happens
next.

A message may arrive late, twice, or from two nodes at once. So it names what it is about: the scope, and the number of
the wait. Each wait gets a new number (`Turn.begin_wait`), so the message that ends a wait makes every other message for
that wait stale. There are two refinements. A task token outlives retries, so a report with a token names the entry of
the step. A lost call does not end its wait, so `RetryLostCall` also names the attempt, whose number it raises.

`advance` handles a message for a scope only if both hold: `is_current`, the message names what the scope waits for now;
and `TRANSITIONS` has a row for (wait kind, message). Every other message is stale: it changes nothing, and the turn's
outcome says so. After the handler, the turn enters steps until no scope is READY (the rows without a message). When
the execution ends, all its scopes are removed, in every kind of wait.

A call that submits work keeps its wait number when TASK becomes TOKEN or CHILD: a report that overtakes the reply still
finds its wait, and then the reply is stale.

`Turn` asserts that each change of a wait or of a status is in these tables. If one is not, the turn raises before
anything is committed, and the engine parks the execution as its last commit left it.
"""

from typing import Final, NamedTuple

from flowserver.machine.messages import RetryLostCall, ScopeMessage, TaskReplied, TaskReported, TimerFired
from flowserver.machine.state import Scope, Status, WaitKind


class StatusTransition(NamedTuple):
    """One way from a status of an execution to another; `source` is None for a new execution."""

    source: Status | None
    target: Status
    when: str


STATUS_TRANSITIONS: Final = (
    StatusTransition(None, Status.RUNNING, "started"),
    StatusTransition(Status.RUNNING, Status.SUCCEEDED, "last step done"),
    StatusTransition(Status.RUNNING, Status.FAILED, "failure not caught, or a limit"),
    StatusTransition(Status.RUNNING, Status.STOPPED, "Stop"),
    StatusTransition(Status.RUNNING, Status.TIMED_OUT, "DeadlineReached"),
    StatusTransition(Status.FAILED, Status.RUNNING, "Redrive"),
    StatusTransition(Status.STOPPED, Status.RUNNING, "Redrive"),
    StatusTransition(Status.TIMED_OUT, Status.RUNNING, "Redrive"),
)
LEGAL_STATUSES: Final = frozenset((each.source, each.target) for each in STATUS_TRANSITIONS)
"""The same, without the words."""


class Transition(NamedTuple):
    """What a message does to a scope that waits, and what the scope may wait for next.

    `source` is None for a new scope, a target None for a scope that is removed. `message` is None for what a turn does
    without one.
    """

    source: WaitKind | None
    message: type[ScopeMessage] | None
    targets: tuple[WaitKind | None, ...]
    when: str


_W = WaitKind
_AFTER_ATTEMPT: Final = (_W.READY, _W.TIMER, _W.REDRIVE, _W.DONE)
"""The step is done, or a `catch` took its failure; or the next attempt follows after a pause; or the step failed, and
waits for a redrive or ends the execution."""

TRANSITIONS: Final = (
    Transition(None, None, (_W.READY,), "a step opens the list"),
    Transition(
        _W.READY,
        None,
        (_W.READY, _W.TIMER, _W.TASK, _W.JOIN, _W.REDRIVE, _W.DONE, None),
        "the next step, or the list's end",
    ),
    Transition(
        _W.JOIN,
        None,
        (_W.READY, _W.DONE),
        "the last list that the step opened is done, one failed, or a redrive starts over",
    ),
    Transition(_W.DONE, None, (None,), "the execution ends"),
    Transition(
        _W.REDRIVE,
        None,
        (_W.READY, _W.TASK, _W.TIMER, _W.REDRIVE),
        "a redrive makes the call, or enters the step, again",
    ),
    Transition(
        _W.TIMER,
        TimerFired,
        (_W.READY, _W.TASK, _W.TIMER, _W.REDRIVE, _W.DONE),
        "the wait step is over, or the next attempt begins",
    ),
    Transition(_W.TIMER, TaskReported, (_W.TIMER,), "refused, not stale: no attempt can take it during a pause"),
    Transition(
        _W.TASK, TaskReplied, (*_AFTER_ATTEMPT, _W.TOKEN, _W.CHILD), "the call has ended, or has submitted work"
    ),
    Transition(
        _W.TASK,
        TaskReported,
        _AFTER_ATTEMPT,
        "the result, before the call has ended; a call that has not begun is dropped",
    ),
    Transition(_W.TASK, TimerFired, _AFTER_ATTEMPT, "the attempt's time is up; the call is dropped"),
    Transition(_W.TASK, RetryLostCall, (_W.TASK,), "the same attempt's call is ordered again"),
    Transition(_W.TOKEN, TaskReported, _AFTER_ATTEMPT, "the result"),
    Transition(_W.TOKEN, TimerFired, _AFTER_ATTEMPT, "the attempt's time is up"),
    Transition(_W.CHILD, TaskReported, _AFTER_ATTEMPT, "the sub-flow has ended"),
    Transition(_W.CHILD, TimerFired, _AFTER_ATTEMPT, "the attempt's time is up"),
)

FOLLOWING: Final = {
    kind: frozenset(target for each in TRANSITIONS if each.source is kind for target in each.targets if target)
    for kind in WaitKind
}
"""What a scope may wait for after each kind of wait."""


def is_current(scope: Scope, message: ScopeMessage, now_ms: int) -> bool:
    """Whether the message names what the scope waits for now; a timer must also be due."""
    match message:
        case TaskReported():
            return message.entered_event_id == scope.entered_event_id and message.wait_id in (None, scope.wait_id)
        case TimerFired():
            return message.wait_id == scope.wait_id and scope.wake_at is not None and scope.wake_at <= now_ms
        case RetryLostCall():
            return message.wait_id == scope.wait_id and message.attempt == scope.attempt
    return message.wait_id == scope.wait_id
