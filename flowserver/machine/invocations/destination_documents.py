"""The document about an asynchronous invocation that its destination gets. Pure."""

from typing import Final

from flowserver.base.json_values import Json, JsonObject, dump_json, json_bytes
from flowserver.machine.invocations.result_of_ended_invocation import json_of
from flowserver.machine.invocations.states import InvocationState, InvocationStatus

UNHANDLED: Final = "UnhandledInvocationError"

LATEST: Final = "LATEST"
"""How a missing qualifier is shown."""

DOCUMENT_BYTES_MAX: Final = 49_152
"""What the smallest destination takes: a queue's message of 64 KiB, in Base64."""


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
    document = json_of((state.cause or "").encode())
    if isinstance(document, dict):
        return document
    return {"errorType": state.error, "errorMessage": state.cause}


def _readable(payload: bytes | None) -> Json:
    """The value, if the bytes are JSON, else their text."""
    if not payload:
        return None
    value = json_of(payload)
    return payload.decode("utf-8", "replace") if value is None else value
