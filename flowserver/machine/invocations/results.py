"""The result of an asynchronous invocation: for the task that waits for it, and as a document for destinations.

Pure.
"""

from typing import Final

from flowserver.base.json_values import InvalidJson, Json, JsonObject, dump_json, json_bytes, load_json
from flowserver.machine.invocations.states import InvocationState, InvocationStatus
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.retry_and_catch import INVALID_LOCAL

UNHANDLED: Final = "UnhandledInvocationError"
UNKNOWN: Final = "FC.Unknown"
"""The error of a function that did not name its own."""

LATEST: Final = "LATEST"
"""How a missing qualifier is shown."""

DOCUMENT_BYTES_MAX: Final = 49_152
"""What the smallest destination takes: a queue's message of 64 KiB, in Base64."""


def result_of_invocation(state: InvocationState) -> Result:
    """The result that a waiting step gets: an object that the function returned, or a failure."""
    if state.status is not InvocationStatus.SUCCEEDED:
        return Failure(state.error or UNKNOWN, state.cause or "")
    if state.result is None:
        return Failure(INVALID_LOCAL, "the function returned more than is kept of an invocation")
    output = _json_of(state.result)
    if not isinstance(output, dict):
        return Failure(INVALID_LOCAL, "the function did not return a JSON object")
    return Success(output)


def destination_document(title: str, request_id: str, payload: bytes, state: InvocationState) -> str:
    """The document for a destination, as Function Compute documents it. `title` is `service.qualifier/name`.

    Payloads that would make it longer than any destination accepts are left out.
    """
    service, _, function = title.rpartition("/")
    succeeded = state.status is InvocationStatus.SUCCEEDED
    called = state.attempt > 0
    document: JsonObject = {
        "timestamp": state.ended_at,
        "requestContext": {
            "requestId": request_id,
            "functionArn": f"acs:fc:::services/{service}/functions/{function}",
            "condition": "" if succeeded else _condition(state),
            "approximateInvokeCount": state.attempt,
        },
        "requestPayload": _readable(payload),
        "responseContext": {
            "statusCode": 200 if called else 400,
            "functionError": UNHANDLED if state.status is InvocationStatus.FAILED else "",
        },
        "responsePayload": _readable(state.result) if succeeded else _failure(state),
    }
    for name in ("requestPayload", "responsePayload"):
        if json_bytes(document) > DOCUMENT_BYTES_MAX:
            document[name] = None
    return dump_json(document)


def _condition(state: InvocationState) -> str:
    return UNHANDLED if state.status is InvocationStatus.FAILED else str(state.status)


def _failure(state: InvocationState) -> Json:
    """The function's error document, or one of our own."""
    document = _json_of((state.cause or "").encode())
    if isinstance(document, dict):
        return document
    return {"errorType": state.error, "errorMessage": state.cause}


def _readable(payload: bytes | None) -> Json:
    """The value, if the bytes are JSON, else their text."""
    if not payload:
        return None
    value = _json_of(payload)
    return payload.decode("utf-8", "replace") if value is None else value


def _json_of(text: bytes) -> Json:
    try:
        return load_json(text.decode())
    except (UnicodeDecodeError, InvalidJson):
        return None
