"""What may be registered as the endpoint of a function: its URL, headers, time limit and hooks, and their bounds.

Pure: `forbidden_addresses` is for what a name resolves to.
"""

import re
from collections.abc import Mapping

from yarl import URL

from flowserver.base.errors import InvalidArgument
from flowserver.base.secret_references import MARK, has_broken_reference, is_before_path, with_stand_ins
from flowserver.base.signed_messages import ID, SIGNATURE, TIMESTAMP
from flowserver.invokers.forbidden_addresses import NEVER_CALLED, is_always_refused
from flowserver.invokers.network_lists import literal_address

TIMEOUT_SECONDS_MAX = 86_400

HOOK_SECONDS_DEFAULT = 3
HOOK_SECONDS_MAX = 90
"""How long a hook of a function may take."""

_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")  # a token of RFC 9110
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")

CONNECTION_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""They steer the connection, which is the server's business; setting them enables request smuggling."""

CALL_HEADERS = frozenset(
    {
        "content-type",
        "accept-encoding",
        "idempotency-key",
        "x-flowserver-attempt",
        "x-flowserver-flow",
        "x-flowserver-execution",
        "x-flowserver-step",
        "x-fc-request-id",
        "x-fc-invocation-type",
        "x-fc-stateful-async-invocation-id",
        "x-fc-service-name",
        "x-fc-function-name",
        "x-fc-qualifier",
        "x-fc-log-type",
        "traceparent",
    }
)
"""They describe the single call; the server sets them itself."""


SIGNATURE_HEADERS = frozenset(name.lower() for name in (ID, TIMESTAMP, SIGNATURE))
"""They sign the single call; the server sets them if it has secrets for that."""


def check_endpoint(url: str, headers: Mapping[str, str], timeout_seconds: int) -> None:
    """Raise InvalidArgument unless a function can be registered with these; says which part is wrong and why."""
    _check_called_url(url, "url")
    for name, value in headers.items():
        _check_header(name, value)
    if not 1 <= timeout_seconds <= TIMEOUT_SECONDS_MAX:
        raise InvalidArgument(f"timeoutSeconds must be 1 to {TIMEOUT_SECONDS_MAX}.")


def check_hooks(initialize_url: str | None, pre_stop_url: str | None, hook_seconds: int | None) -> None:
    """Raise InvalidArgument unless a function can be registered with these hooks; None means that it has none."""
    if initialize_url is not None:
        _check_called_url(initialize_url, "initializeUrl")
    if pre_stop_url is not None:
        _check_called_url(pre_stop_url, "preStopUrl")
    if hook_seconds is not None and not 1 <= hook_seconds <= HOOK_SECONDS_MAX:
        raise InvalidArgument(f"hookSeconds must be 1 to {HOOK_SECONDS_MAX}.")


def _check_called_url(text: str, name: str) -> None:
    """As `check_url`, of a function's URL: its path and query may refer to secrets."""
    if MARK in text:
        _check_references(text, name)
        if is_before_path(text):
            raise InvalidArgument(f"{name} may refer to secrets in its path and query only.")
        text = with_stand_ins(text)
    check_url(text, name)


def check_url(text: str, name: str = "url") -> None:
    """Raise InvalidArgument unless the server may call this URL; `name` is the parameter's name in the message."""
    if MARK in text:
        raise InvalidArgument(f"{name} cannot refer to secrets: only the URLs and headers of functions can.")
    if _UNPRINTABLE.search(text):
        raise InvalidArgument(f"{name} must not contain blanks or control characters.")
    try:
        url = URL(text)
    except ValueError as error:
        raise InvalidArgument(f"{name} is not valid: {error}.") from None
    if url.scheme not in {"http", "https"}:
        raise InvalidArgument(f"{name} must begin with http:// or https://.")
    if not url.host:
        raise InvalidArgument(f"{name} must name a host.")
    address = literal_address(url.host)
    if address is not None and is_always_refused(str(address)):
        raise InvalidArgument(f"{name} is refused: {NEVER_CALLED}.")
    if url.raw_user or url.raw_password:
        raise InvalidArgument(f"{name} must not carry credentials; send them as a header.")
    if "#" in text:
        raise InvalidArgument(f"{name} must not have a fragment.")


def _check_references(text: str, name: str) -> None:
    if has_broken_reference(text):
        raise InvalidArgument(f"{name} refers to a secret in the wrong way: write {MARK}NAME}}.")


def _check_header(name: str, value: str) -> None:
    if not _HEADER_NAME.match(name):
        raise InvalidArgument(f"header name {name!r} is not valid.")
    if name.lower() in CONNECTION_HEADERS | CALL_HEADERS | SIGNATURE_HEADERS:
        raise InvalidArgument(f"header {name} is set by the server and cannot be registered.")
    _check_references(value, f"the value of header {name}")
    if not _HEADER_VALUE.match(value):  # the value is not repeated: it may be a secret
        raise InvalidArgument(f"the value of header {name} must be printable ASCII, without line breaks.")
