"""What a call without a reply means: pure decisions on the HTTP client's exceptions.

Causes are made of our own words and the operating system's, never of the exception's full text: that can hold the
URL's query or header values, and all callers who may read a history see its causes.
"""

import errno
import ipaddress
import os
import socket

from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientSSLError,
    ConnectionTimeoutError,
    InvalidURL,
    NonHttpUrlClientError,
)

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Endpoint, Failed, Invocation
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.forbidden_addresses import AddressRefused
from flowserver.invokers.replies import failed

NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""What the system says when this process, or the machine, can open no further socket."""


def is_own_trouble(error: ClientConnectorError) -> bool:
    """Whether no connection came about because the server ran out of descriptors, memory or local ports."""
    if isinstance(error, ClientConnectorDNSError):
        return not _can_open()  # a look-up that can open no socket does not say so
    if error.os_error.errno == errno.EADDRNOTAVAIL:
        return _has_way_to(error.host)
    return error.os_error.errno in NO_DESCRIPTOR


def _can_open() -> bool:
    try:
        socket.socket().close()
    except OSError as error:
        return error.errno not in NO_DESCRIPTOR
    return True


def _has_way_to(host: str | None) -> bool:
    """Whether the machine has an address to call from: without one, it is not ports that are missing."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:  # a name, which was resolved to addresses that this machine can use
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # of the Internet Protocol
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))  # which sends nothing
    except OSError as error:
        return error.errno in NO_DESCRIPTOR
    return True


def call_seconds(invocation: Invocation, endpoint: Endpoint) -> float:
    """How long the whole call may take: what ends first, the step's time or the function's own time-out."""
    return max(0.0, min(invocation.timeout_ms / 1000, endpoint.timeout_seconds))


def timed_out(invocation: Invocation, endpoint: Endpoint, connected: bool, limits: Limits) -> Failed:
    """The failure of a call that took all of `call_seconds`."""
    if invocation.timeout_ms <= endpoint.timeout_seconds * 1000:
        cause = f"{invocation.title} did not reply within the {invocation.timeout_ms} ms that the step had left."
        return failed(ErrorName.TASK_TIMEOUT, cause, limits)
    if not connected:
        cause = f"{invocation.title} accepted no connection within {endpoint.timeout_seconds} s."
        return failed(ErrorName.SERVER_ERROR, cause, limits)
    cause = f"{invocation.title} did not reply within its time-out of {endpoint.timeout_seconds} s."
    return failed(ErrorName.UNKNOWN, cause, limits)


def broken_off(invocation: Invocation, error: Exception, limits: Limits) -> Failed:
    """The failure of a call that ended in an exception of the HTTP client."""
    name, reason = explain(error)
    return failed(name, f"{invocation.title} {reason}.", limits)


def explain(error: Exception) -> tuple[ErrorName, str]:
    """An error name, and what happened, as it is said after the name of who was called."""
    if isinstance(error, ClientSSLError):
        return ErrorName.SERVER_ERROR, "could not be reached: no secure connection came about"
    if isinstance(error, ClientConnectorDNSError):
        return ErrorName.SERVER_ERROR, "could not be reached: its host name was not resolved"
    if isinstance(error, ClientConnectorError):
        return _explain_connection(error.os_error)
    if isinstance(error, ConnectionTimeoutError):
        return ErrorName.SERVER_ERROR, "could not be reached: no answer to the connection attempt"
    if isinstance(error, InvalidURL | NonHttpUrlClientError):
        return ErrorName.INVALID_ARGUMENT, "was not called: its URL is not valid"
    if isinstance(error, ValueError):
        return ErrorName.INVALID_ARGUMENT, "was not called: the request's headers or body are not valid"
    return ErrorName.UNKNOWN, f"was called, but the connection broke before its reply had come ({type(error).__name__})"


def _explain_connection(error: OSError) -> tuple[ErrorName, str]:
    if isinstance(error, AddressRefused):
        return ErrorName.INVALID_ARGUMENT, f"was not called: {error}"
    reason = os.strerror(error.errno) if error.errno else "no connection came about"
    return ErrorName.SERVER_ERROR, f"could not be reached: {reason}"
