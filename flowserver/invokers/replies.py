"""Classifies a function's HTTP reply by status, headers and body. Pure.

The rules are those of Function Compute 2.0: a function that fails answers 200 with the header X-Fc-Error-Type and an
error document; a custom runtime marks failure with `x-fc-status: 404`; the platform itself refuses with a 4xx or 5xx
and {ErrorCode, ErrorMessage}. Plain web servers, which know none of this, are read by status and document.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from flowserver.base.json_values import InvalidJson, JsonObject, dump_json, load_json_object
from flowserver.base.limits import Limits
from flowserver.base.request_ids import readable_request_id
from flowserver.invokers.calls import Failed, Invocation, Replied, Reply
from flowserver.invokers.error_names import ErrorName, error_of_status
from flowserver.invokers.request_bytes import request_id

BODY_CHARACTERS_MAX: Final = 1_000
"""So much of a body that is no error document is shown in the error's cause."""

_CREDENTIALS = re.compile(r"\b(Bearer|Basic)\s+[^\s<\"']+", re.IGNORECASE)
"""A server that shows the request it got would put its credentials into the history."""


def read_reply(invocation: Invocation, reply: Reply | Failed, limits: Limits) -> Replied | Failed:
    """The result of a call; raises nothing."""
    if isinstance(reply, Failed):
        return reply
    result = classify_reply(invocation, reply.status, reply.headers, reply.body, limits)
    known = request_id_of(invocation, reply.headers)
    if isinstance(result, Replied):
        return Replied(result.output, known)
    return replace(result, request_id=known)


def request_id_of(invocation: Invocation, headers: Mapping[str, str]) -> str:
    """The id that names the call in the logs of both sides: the one answered, else the one sent."""
    return readable_request_id(headers.get("X-Fc-Request-Id", "")) or request_id(invocation)


def classify_reply(
    invocation: Invocation, status: int, headers: Mapping[str, str], body: bytes, limits: Limits
) -> Replied | Failed:
    """Classify a complete reply; header names may have any case. Raises nothing, for any bytes."""
    failure = failure_in(invocation, status, headers, body, limits)
    if failure is not None:
        return failure
    try:
        return Replied(load_json_object(body))
    except InvalidJson as error:
        cause = f"{invocation.title} answered {status} with a body that is not a JSON object: {error}; "
        cause += _beginning(invocation, headers, body)
        return failed(ErrorName.INVALID_LOCAL, cause, limits)


def failure_in(
    invocation: Invocation, status: int, headers: Mapping[str, str], body: bytes, limits: Limits
) -> Failed | None:
    """The failure that a reply reports; None if the function succeeded, with any result."""
    if not 200 <= status < 300:
        return _read_refusal(invocation, status, headers, body, limits)
    if is_marked_as_error(headers):
        return _read_function_error(invocation, body, limits)
    return None


def body_too_large(invocation: Invocation, limits: Limits) -> Failed:
    """The failure for a body larger than `function_response_bytes_max`, with any status."""
    cause = f"{invocation.title} answered with more than {limits.function_response_bytes_max} bytes."
    return failed(ErrorName.INVALID_LOCAL, cause, limits)


def failed(error: str, cause: str, limits: Limits) -> Failed:
    """A failure whose error and cause are cut to the lengths that the limits allow."""
    return Failed(str(error)[: limits.error_characters_max], cause[: limits.cause_characters_max])


def _read_refusal(
    invocation: Invocation, status: int, headers: Mapping[str, str], body: bytes, limits: Limits
) -> Failed:
    if is_marked_as_error(headers):
        return _read_function_error(invocation, body, limits)
    document = _load_document(body)
    if error_type := _text(document, "errorType"):
        return failed(error_type, dump_json(document), limits)
    if code := _text(document, "ErrorCode"):
        return failed(ErrorName.API_ERROR.format(ErrorCode=code), dump_json(document), limits)
    remark = "; redirects are not followed" if 300 <= status < 400 else ""
    cause = f"{invocation.title} answered {status}{remark}; {_beginning(invocation, headers, body)}"
    return failed(error_of_status(status), cause, limits)


def _beginning(invocation: Invocation, headers: Mapping[str, str], body: bytes) -> str:
    """The id under which both logs have the call, and how the body begins."""
    text = body[: 4 * BODY_CHARACTERS_MAX].decode("utf-8", "replace").strip()[:BODY_CHARACTERS_MAX]
    text = _CREDENTIALS.sub(r"\1 ***", text)
    known = f"X-Fc-Request-Id {request_id_of(invocation, headers)}"
    return f"{known}: {text}" if text else f"{known}."


def _read_function_error(invocation: Invocation, body: bytes, limits: Limits) -> Failed:
    document = _load_document(body)
    error = _text(document, "errorType") or ErrorName.UNKNOWN
    if document:
        return failed(error, dump_json(document), limits)
    return failed(error, f"{invocation.title} failed without an error document.", limits)


def is_marked_as_error(headers: Mapping[str, str]) -> bool:
    """Whether a reply reports, with any status, that the function failed."""
    return "X-Fc-Error-Type" in headers or headers.get("X-Fc-Status", "").strip() == "404"


def _load_document(body: bytes) -> JsonObject:
    """The body as a JSON object, or {} if it is none: the reply is a failure either way."""
    try:
        return load_json_object(body)
    except InvalidJson:
        return {}


def _text(document: JsonObject, key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""
