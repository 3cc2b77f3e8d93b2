"""Verifies signed requests of Function Compute clients: who signed it, when, and what it asks for.

Pure: the caller looks up the secret. The signature covers method, path, Content-MD5, Content-Type, Date and every
`x-fc-*` header; neither the query nor, unless Content-MD5 is right, the body. There is no nonce: an eavesdropper
can send a request again for a quarter of an hour, so use TLS.
"""

import base64
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowserver.base.clock import parse_http_date
from flowserver.base.errors import InvalidArgument, MissingParameter, RequestTimeTooSkewed, SignatureNotMatch
from flowserver.operations.refusals import Unsigned

TIME_WINDOW_MS = 15 * 60 * 1000
"""How far a request's date may be from the server's, either way."""

SCHEME = "FC "

_PROXY = re.compile("/[^/]+/proxy/")

# Longer texts are not repeated in an error message.
_SHOWN_CHARACTERS_MAX = 2048


@dataclass(frozen=True, slots=True)
class Claim:
    """What a signed request says of itself; nothing of it is proven until `verify` has passed."""

    access_key_id: str
    signature: str


def string_to_sign(method: str, path: str, headers: Mapping[str, str], query: Sequence[tuple[str, str]] = ()) -> str:
    """What is signed; `path` is decoded and without the query, header names are in lower case.

    The query is signed below `/proxy/` only.
    """
    own = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-fc-"))
    first = (method.upper(), *(headers.get(name, "") for name in ("content-md5", "content-type", "date")))
    text = "\n".join((*first, own + path))
    if _PROXY.match(path):
        text += "\n" + "\n".join(sorted(f"{name}={value}" for name, value in query))
    return text


def sign(secret: str, text: str) -> str:
    """The signature of a string to sign."""
    return base64.b64encode(hmac.digest(secret.encode(), text.encode(), "sha256")).decode()


def read_claim(headers: Mapping[str, str]) -> Claim:
    """Who a request claims to be from; raises MissingParameter if it is not signed, InvalidArgument for odd forms."""
    authorization = headers.get("authorization")
    if not authorization:
        raise Unsigned("required HTTP header Authorization was not specified")
    key, colon, signature = authorization.removeprefix(SCHEME).strip().rpartition(":")
    if not authorization.startswith(SCHEME) or not colon:
        raise InvalidArgument("the Authorization header must be 'FC {accessKeyId}:{signature}'")
    return Claim(key, signature)


def verify(
    claim: Claim,
    method: str,
    path: str,
    headers: Mapping[str, str],
    secret: str,
    now_ms: int,
    query: Sequence[tuple[str, str]] = (),
) -> None:
    """Check a claim with the secret of its access key.

    Raises SignatureNotMatch if anything that is signed was changed, MissingParameter without a date, InvalidArgument
    for a date that is none, and RequestTimeTooSkewed if it is more than 15 minutes from `now_ms`.
    """
    text = string_to_sign(method, path, headers, query)
    if not hmac.compare_digest(sign(secret, text).encode(), claim.signature.encode("utf-8", "surrogatepass")):
        shown = f"; the server signed {text!r}" if len(text) <= _SHOWN_CHARACTERS_MAX else ""
        raise SignatureNotMatch(f"The signature does not match the request{shown}")
    if abs(now_ms - _date_ms(headers)) > TIME_WINDOW_MS:
        raise RequestTimeTooSkewed


def _date_ms(headers: Mapping[str, str]) -> int:
    date = headers.get("date") or headers.get("x-fc-date")
    if not date:
        raise MissingParameter("required HTTP header Date was not specified")
    try:
        return parse_http_date(date)
    except ValueError:
        raise InvalidArgument(f"{date[:40]!r} is not a date like 'Sat, 31 Jan 2026 12:00:00 GMT'") from None
