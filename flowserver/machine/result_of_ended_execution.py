"""The result of an ended execution for the task that waits for it."""

from flowserver.base.json_values import JsonObject
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.retry_and_catch import EXECUTION_STOPPED, FAILED, TASK_TIMEOUT
from flowserver.machine.state import Status


def result_of_end(status: Status, output: JsonObject | None, error: str | None, cause: str | None) -> Result:
    """The result that a `sync` step, or the task of a CallbackFnFTaskToken, gets from an ended execution.

    A time-out of the whole execution is the task's time-out; a stop counts under the error its caller gave.
    """
    if status is Status.SUCCEEDED:
        return Success(output or {})
    if status is Status.TIMED_OUT:
        return Failure(TASK_TIMEOUT, cause or "")
    if status is Status.STOPPED:
        return Failure(error or EXECUTION_STOPPED, cause or "")
    return Failure(error or FAILED, cause or "")
