"""The table of faults: what a simulation can do to calls, reports, nodes and data. The reference page has it."""

from enum import StrEnum
from typing import Final


class FaultKind(StrEnum):
    """The kinds of faults by name. Names are stable: test files have them."""

    ERROR = "error"
    UNEXPECTED = "unexpected-error"
    SERVER_ERROR = "5xx"
    THROTTLED = "throttled"
    OUTAGE = "outage"
    INVALID = "invalid-result"
    TIMEOUT = "timeout"
    SLOW = "slow"
    LATE = "late"
    FAILED_CALLBACK = "failed-callback"
    MISSING_CALLBACK = "missing-callback"
    EARLY_CALLBACK = "early-callback"
    LATE_CALLBACK = "late-callback"
    DUPLICATE_CALLBACK = "duplicate-callback"
    CRASH = "crash-at-commit"
    EMPTY_COLLECTION = "empty-collection"
    LARGE_COLLECTION = "large-collection"


_OF = FaultKind

FAULTS: Final[dict[FaultKind, str]] = {
    _OF.ERROR: "A call fails with an error that a `retry` or `catch` of its step names, once or each time.",
    _OF.UNEXPECTED: "A function raises an error that the flow does not name: `UnexpectedError`. A sub-flow fails with "
    "`FnF.Failed`.",
    _OF.SERVER_ERROR: "A service fails: `FC.InternalServerError` or `FC.Unknown`, for an action "
    "`{service}.InternalError`, for a queue or topic `MNS.BrokerUnavailable`.",
    _OF.THROTTLED: "A function is busy: `FC.ResourceThrottled`.",
    _OF.OUTAGE: "A function or service that is called again after it has failed with `5xx` or `timeout` fails so for "
    "good.",
    _OF.INVALID: "A function returns something that is no JSON object: `FnF.InvalidLocal`.",
    _OF.TIMEOUT: "No answer comes until the step's time-out. Steps without `timeoutSeconds` have none.",
    _OF.SLOW: "The answer comes one millisecond before the step's time-out; after ten minutes if it has none.",
    _OF.LATE: "The answer comes one millisecond after the step's time-out, when nothing waits for it.",
    _OF.FAILED_CALLBACK: "A report says that the task failed, with an error that the step names, or `Rejected`.",
    _OF.MISSING_CALLBACK: "No report comes.",
    _OF.EARLY_CALLBACK: "The report comes before the call has been answered.",
    _OF.LATE_CALLBACK: "The report comes one millisecond after the step's time-out.",
    _OF.DUPLICATE_CALLBACK: "The report comes twice.",
    _OF.CRASH: "The node crashes: after the commit that orders a call, or before the commit of its result. Calls that "
    "were under way are lost, and made again with the same idempotency key.",
    _OF.EMPTY_COLLECTION: "Lists in made-up data are empty, or have one element.",
    _OF.LARGE_COLLECTION: "Lists in made-up data have more elements than a foreach runs at once.",
}
"""What each fault does."""
assert set(FAULTS) == set(FaultKind)
