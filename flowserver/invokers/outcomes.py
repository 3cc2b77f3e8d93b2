"""The outcome of an invocation where the function's bytes are wanted: by its caller, or as an asynchronous result.

Pure. The rules for what counts as a failure are those of `replies`. The bytes are kept, because Function Compute's API
returns what the function wrote.
"""

from typing import Final

import msgspec

from flowserver.base.json_values import InvalidJson, dump_json_bytes, load_json_object
from flowserver.base.limits import Limits
from flowserver.invokers.calls import Failed, Invocation, Reply
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.replies import failure_in, is_marked_as_error
from flowserver.machine.invocations.lifecycle import AttemptFailed, AttemptSucceeded

HANDLED: Final = "HandledInvocationError"
UNHANDLED: Final = "UnhandledInvocationError"

LOG_HEADER: Final = "X-Fc-Log-Result"
LOG_CHARACTERS_MAX: Final = 8_192
"""The end of a log is 4 KB before it is encoded in base64."""


class Returned(msgspec.Struct, frozen=True):
    """The function ran and returned, with success or an error."""

    payload: bytes
    """What it returned, or its error document."""
    function_error: str = ""
    """HANDLED or UNHANDLED if it failed."""
    log: str = ""
    """The end of its log in base64, if it gave any."""


class Refused(msgspec.Struct, frozen=True):
    """The function did not run."""

    status: int
    code: str
    message: str


def outcome_of(invocation: Invocation, reply: Reply | Failed, limits: Limits) -> Returned | Refused:
    """The outcome of a reply, or of a call without a reply."""
    if isinstance(reply, Failed):
        return _without_reply(reply)
    failure = failure_in(invocation, reply.status, reply.headers, reply.body, limits)
    log = reply.headers.get(LOG_HEADER, "")[:LOG_CHARACTERS_MAX]
    if failure is None:
        return Returned(reply.body, log=log)
    if not is_marked_as_error(reply.headers) and failure.error.startswith("FC."):
        status = reply.status if reply.status >= 400 else 400
        return Refused(status, failure.error.removeprefix("FC."), _message(reply.body) or failure.cause)
    how = HANDLED if reply.headers.get("X-Fc-Error-Type") == HANDLED else UNHANDLED
    return Returned(reply.body, how, log)


def outcome_of_attempt(
    call: Invocation, reply: Reply | Failed, duration_ms: int, limits: Limits
) -> AttemptSucceeded | AttemptFailed:
    """The outcome of an attempt of an asynchronous invocation; a result above the limit counts as none."""
    if isinstance(reply, Failed):
        return AttemptFailed(reply.error, reply.cause, duration_ms)
    failure = failure_in(call, reply.status, reply.headers, reply.body, limits)
    if failure is not None:
        return AttemptFailed(failure.error, failure.cause, duration_ms)
    fits = len(reply.body) <= limits.invocation_result_bytes_max
    return AttemptSucceeded(reply.body if fits else None, duration_ms)


def _without_reply(failed: Failed) -> Returned | Refused:
    if failed.error == ErrorName.SERVER_ERROR:
        return Refused(412, "FunctionNotStarted", failed.cause)
    if failed.error == ErrorName.INVALID_ARGUMENT:
        return Refused(400, "InvalidArgument", failed.cause)
    # It may have run: its time was up, the connection broke, or it returned more than it may.
    return Returned(dump_json_bytes({"errorMessage": failed.cause}), UNHANDLED)


def _message(body: bytes) -> str:
    """The message of a refusal's document, "" if there is none."""
    try:
        message = load_json_object(body).get("ErrorMessage")
    except InvalidJson:
        return ""
    return message if isinstance(message, str) else ""
