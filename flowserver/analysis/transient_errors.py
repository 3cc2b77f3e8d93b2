"""Errors that may be gone when a call is made again. docs/reference/errors.md shows the table.

They have no name in common, so a retry that lists some of them and not others lets an execution fail by the others.
"""

from typing import Final, NamedTuple

from flowserver.language.graph import ActionTarget, FunctionTarget, Pattern, TaskStep
from flowserver.language.resources import START_EXECUTION
from flowserver.language.targets import INVOCATION_TYPE
from flowserver.machine.retry_and_catch import TASK_TIMEOUT


class TransientError(NamedTuple):
    """One of them."""

    cause: str
    may_have_run: bool
    """Whether the callee may have done its work."""


CALL_ERRORS: Final[dict[str, TransientError]] = {
    "FC.ResourceThrottled": TransientError("status 503: the service is busy, or restarts", may_have_run=False),
    "FC.ResourceExhausted": TransientError("status 429: no room for the call", may_have_run=False),
    "FC.ServerError": TransientError("status 502, 504 or another 5xx, or no connection", may_have_run=True),
    "FC.InternalServerError": TransientError("status 500", may_have_run=True),
    "FC.Unknown": TransientError("the connection broke, or the function crashed or took too long", may_have_run=True),
    TASK_TIMEOUT: TransientError("the step's `timeoutSeconds` passed", may_have_run=True),
}
"""Of calls of functions, also of those that serve an action."""

OTHER_ERRORS: Final[dict[str, str]] = {
    "MNS.BrokerUnavailable": "a message to a broker, which was not reached",
    "FnF.ResourceThrottled": "a sub-flow: as many executions run as may",
    "fnf.ResourceThrottled": "the same for `action: fnf:StartExecution`",
}
"""Of other targets, which have one each."""


def calls_a_function(step: TaskStep) -> bool:
    """Whether the step's attempts end as a function's call does. A submission does not wait for that."""
    target = step.target
    if isinstance(target, ActionTarget):
        return target.action != START_EXECUTION
    is_submitted = INVOCATION_TYPE in (step.service_params or {}) and step.pattern is not Pattern.SYNC
    return isinstance(target, FunctionTarget) and not is_submitted
