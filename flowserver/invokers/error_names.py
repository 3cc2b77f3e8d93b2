"""The error names a function call can end with, one table, each row saying when; docs/reference/errors.md shows it.

Names and triggers follow the documentation of Function Compute 2.0 (InvokeFunction, error handling) and of the
task step of Serverless Workflow; where these are silent, the row says what this server does.
"""

from enum import StrEnum
from typing import Final

from flowserver.base.errors import FlowServerError, FunctionNotFound, FunctionNotStarted, ServiceNotFound


class ErrorName(StrEnum):
    """A row: the name as retry and catch write it, the HTTP status that alone decides it, and when it appears."""

    status: int | None
    when: str

    def __new__(cls, name: str, status: int | None, when: str) -> "ErrorName":
        """Make a row; the name is its value."""
        row = str.__new__(cls, name)
        row._value_ = name
        row.status = status
        row.when = when
        return row

    FUNCTION_ERROR = (
        "{errorType}",
        None,
        "The function raised: the errorType of its error document, bare, e.g. KeyError. The reply is marked as an "
        "error by the header X-Fc-Error-Type or x-fc-status: 404, or by a status outside 2xx.",
    )
    API_ERROR = (
        "FC.{ErrorCode}",
        None,
        "A status outside 2xx with the document {ErrorCode, ErrorMessage}: the call was refused before it ran.",
    )
    RESOURCE_EXHAUSTED = ("FC.ResourceExhausted", 429, "Status 429 without a document: no room for the call.")
    RESOURCE_THROTTLED = ("FC.ResourceThrottled", 503, "Status 503 without a document: calls are throttled.")
    INTERNAL_SERVER_ERROR = ("FC.InternalServerError", 500, "Status 500 without a document.")
    FUNCTION_NOT_FOUND = ("FC.FunctionNotFound", 404, "Status 404 without a document: nothing at this address.")
    INVALID_ARGUMENT = (
        "FC.InvalidArgument",
        None,
        "Any other 3xx or 4xx without a document (redirects are not followed); or the call could not be made as "
        "asked: its address is one the server refuses to call, its URL or StatefulAsyncInvocationID is not valid.",
    )
    SERVER_ERROR = (
        "FC.ServerError",
        None,
        "Any other 5xx without a document; or no connection came about (name not found, refused, no answer, TLS), "
        "so the function did not run.",
    )
    UNKNOWN = (
        "FC.Unknown",
        None,
        "The outcome is unknown: the reply is marked as an error but has no errorType (crash, time-out inside the "
        "function, out of memory, plain text), the connection broke before the whole reply had come, the reply was no "
        "valid HTTP, its head exceeded function_response_head_bytes_max, more interim replies (1xx) came than "
        "interim_replies_max, or the function's own time-out passed.",
    )
    INVALID_LOCAL = (
        "FnF.InvalidLocal",
        None,
        "The function answered 2xx with something other than a JSON object in UTF-8, or with more bytes than "
        "function_response_bytes_max.",
    )
    SECRET_NOT_FOUND = (
        "FnF.SecretNotFound",
        None,
        "The function's URL or headers name a secret that does not exist, so it was not called.",
    )
    SECRET_UNREADABLE = (
        "FnF.SecretUnreadable",
        None,
        "They name a secret that the server's keys do not decrypt, so it was not called.",
    )
    TASK_TIMEOUT = ("FnF.TaskTimeout", None, "The step's timeoutSeconds passed before the function replied.")


_BY_STATUS = {row.status: row for row in ErrorName if row.status is not None}


REFUSALS: Final[dict[str, type[FlowServerError]]] = {
    "FC.ServiceNotFound": ServiceNotFound,
    ErrorName.FUNCTION_NOT_FOUND: FunctionNotFound,
    ErrorName.SECRET_NOT_FOUND: FunctionNotStarted,
    ErrorName.SECRET_UNREADABLE: FunctionNotStarted,
}
"""What callers get who invoke a function that cannot be called for one of these reasons."""


def error_of_status(status: int) -> ErrorName:
    """The name for a reply outside 2xx that carries no document."""
    return _BY_STATUS.get(status) or (ErrorName.SERVER_ERROR if status >= 500 else ErrorName.INVALID_ARGUMENT)
