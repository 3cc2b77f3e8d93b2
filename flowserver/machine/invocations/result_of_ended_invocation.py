"""The result of an asynchronous invocation for the task that waits for it. Pure."""

from typing import Final

from flowserver.base.json_values import InvalidJson, Json, load_json
from flowserver.machine.invocations.states import InvocationState, InvocationStatus
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.retry_and_catch import INVALID_LOCAL

UNKNOWN: Final = "FC.Unknown"
"""The error of a function that did not name its own."""


def result_of_invocation(state: InvocationState) -> Result:
    """The result that a waiting step gets: an object that the function returned, or a failure."""
    if state.status is not InvocationStatus.SUCCEEDED:
        return Failure(state.error or UNKNOWN, state.cause or "")
    if state.result is None:
        return Failure(INVALID_LOCAL, "the function returned more than is kept of an invocation")
    output = json_of(state.result)
    if not isinstance(output, dict):
        return Failure(INVALID_LOCAL, "the function did not return a JSON object")
    return Success(output)


def json_of(text: bytes) -> Json:
    """The value that the bytes hold as JSON; None if they are not JSON."""
    try:
        return load_json(text)
    except InvalidJson:
        return None
