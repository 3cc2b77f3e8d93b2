"""Errors of this API, and its codes for errors that the other APIs name differently."""

from typing import Final

from flowserver.base.errors import (
    EntityTooLarge,
    FlowServerError,
    InternalServerError,
    InvalidArgument,
    RequestTimeTooSkewed,
    SignatureNotMatch,
    UnknownAccessKey,
)
from flowserver.operations.refusals import Unsigned


class MalformedXml(FlowServerError):
    """The body is not the XML that was asked for."""

    code = "MalformedXML"
    status = 400


class InvalidRequestUrl(FlowServerError):
    """There is nothing at this address."""

    code = "InvalidRequestURL"
    status = 400


class MissingReceiptHandle(FlowServerError):
    """The parameter ReceiptHandle is missing."""

    code = "MissingReceiptHandle"
    status = 400


class MissingVisibilityTimeout(FlowServerError):
    """The parameter VisibilityTimeout is missing."""

    code = "MissingVisibilityTimeout"
    status = 400


class MissingAuthorizationHeader(Unsigned):
    """The request is not signed: the header Authorization is missing."""

    code = "MissingAuthorizationHeader"
    status = 400


class InvalidAuthorizationHeader(FlowServerError):
    """The header Authorization must read: MNS, a space, access key id, a colon, signature."""

    code = "InvalidAuthorizationHeader"
    status = 400


class MissingDateHeader(FlowServerError):
    """The header Date is missing."""

    code = "MissingDateHeader"
    status = 400


class InvalidDateHeader(FlowServerError):
    """The header Date must be a time such as Sat, 21 Nov 2026 07:36:28 GMT."""

    code = "InvalidDateHeader"
    status = 400


class InvalidDigest(FlowServerError):
    """The header Content-MD5 does not match the body."""

    code = "InvalidDegist"  # as the service spells it
    status = 400


_SPELLED: Final[dict[type[FlowServerError], tuple[str, int]]] = {
    UnknownAccessKey: ("InvalidAccessKeyId", 403),
    SignatureNotMatch: ("SignatureDoesNotMatch", 403),
    RequestTimeTooSkewed: ("TimeExpired", 408),
    InternalServerError: ("InternalError", 500),
    EntityTooLarge: (InvalidArgument.code, 400),
}
"""Codes and statuses of errors that the other APIs name differently."""


def spelled(error: FlowServerError) -> tuple[str, int]:
    """The code and the HTTP status of an error."""
    return _SPELLED.get(type(error), (error.code, error.status))
