"""Verifies signed requests: the signer, the time, and that nothing was changed since.

Pure: the caller looks up the secret. The scheme has no nonce, so an intercepted request can be replayed within the
window of its date. TLS prevents that.
"""

import base64
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flowserver.api.content_digest import is_digest_of
from flowserver.api.mns.faults import (
    InvalidAuthorizationHeader,
    InvalidDateHeader,
    InvalidDigest,
    MissingAuthorizationHeader,
    MissingDateHeader,
)
from flowserver.base.clock import parse_http_date
from flowserver.base.errors import RequestTimeTooSkewed, SignatureNotMatch

TIME_WINDOW_MS = 15 * 60 * 1000
"""The largest difference between a request's date and the server's clock, in either direction."""

SCHEME = "MNS"


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it came; `resource` is path and query exactly as on the request line, header names in lower case."""

    method: str
    resource: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """The signer and the time that a request claims; only `verify` proves them."""

    access_key_id: str
    signature: str
    signed_at_ms: int


def read_claim(headers: Mapping[str, str]) -> Claim:
    """The claim of a signed request.

    Raises MissingAuthorizationHeader, InvalidAuthorizationHeader, MissingDateHeader, InvalidDateHeader.
    """
    authorization = headers.get("authorization")
    if not authorization:
        raise MissingAuthorizationHeader
    scheme, _, credentials = authorization.partition(" ")
    access_key_id, colon, signature = credentials.strip().partition(":")
    if scheme != SCHEME or not colon or not access_key_id or not signature:
        raise InvalidAuthorizationHeader
    date = headers.get("x-mns-date") or headers.get("date")
    if not date:
        raise MissingDateHeader
    return Claim(access_key_id, signature, _instant(date))


def verify(request: SignedRequest, claim: Claim, secret: str, now_ms: int) -> None:
    """Check a claim with the secret of its access key.

    Raises SignatureNotMatch, InvalidDigest if the body is not the signed one, RequestTimeTooSkewed if it was
    signed more than 15 minutes from `now_ms`.
    """
    expected = sign(secret, string_to_sign(request))
    if not hmac.compare_digest(expected.encode(), claim.signature.encode("utf-8", "surrogatepass")):
        raise SignatureNotMatch
    check_digest(request)
    if abs(now_ms - claim.signed_at_ms) > TIME_WINDOW_MS:
        raise RequestTimeTooSkewed


def string_to_sign(request: SignedRequest) -> str:
    """The exact text that clients sign."""
    headers = request.headers
    lines = (request.method, *(headers.get(name, "") for name in ("content-md5", "content-type", "date")))
    return "\n".join((*lines, "".join(_own_headers(headers.items())) + request.resource))


def sign(secret: str, text: str) -> str:
    """Base64 of the HMAC-SHA1 of a text, each character of which is one byte of the request (Latin-1)."""
    return base64.b64encode(hmac.digest(secret.encode(), text.encode("latin-1", "replace"), "sha1")).decode()


def check_digest(request: SignedRequest) -> None:
    """Raises InvalidDigest if there is a Content-MD5 that is not the body's."""
    given = request.headers.get("content-md5")
    if given and not is_digest_of(given, request.body):
        raise InvalidDigest


def _own_headers(headers: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name}:{value}\n" for name, value in sorted(headers) if name.startswith("x-mns-")]


def _instant(date: str) -> int:
    try:
        return parse_http_date(date)
    except ValueError:
        raise InvalidDateHeader from None
