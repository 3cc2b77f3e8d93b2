"""Verifies signed RPC requests: who signed it, when, and that nothing was changed since.

Pure: the caller looks up the secret and remembers nonces. Two signatures are accepted, RPC v1 (HMAC-SHA1 over
every parameter) and V3 (ACS3-HMAC-SHA256 over method, path, query, chosen headers and the body); no others.

This order reveals the least to a stranger: `read_claim`, look up the key, `verify`, and only then
spend the nonce, once per access key. A nonce can be forgotten NONCE_KEPT_MS after it was spent.
"""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec

from flowserver.api.rpc.signed_texts import (
    V3_ALGORITHM,
    v1_signature,
    v1_string_to_sign,
    v3_signature,
    v3_string_to_sign,
)
from flowserver.base.clock import parse_instant
from flowserver.base.errors import InvalidArgument, MissingParameter, RequestTimeTooSkewed, SignatureNotMatch

TIME_WINDOW_MS = 15 * 60 * 1000
"""How far a request's time may be from the server's, either way."""

NONCE_KEPT_MS = 2 * TIME_WINDOW_MS + 60_000
"""A request dated at the far end of the window stays valid until it has reached the near end; and a little more,
because the clocks of nodes differ."""

NONCE_CHARACTERS_MAX = 128

V1_MARKS = ("AccessKeyId", "Signature", "BearerToken")
# Action too: an action that only an unsigned header names could be changed on the way.
V1_REQUIRED = ("AccessKeyId", "Signature", "SignatureNonce", "Timestamp", "Action")
# What each of these may say; the SDKs also have RSA, SM3 and bearer-token forms.
V1_ALGORITHM = {"SignatureMethod": ("", "HMAC-SHA1"), "SignatureVersion": ("", "1.0"), "SignatureType": ("",)}
V3_REQUIRED = frozenset(
    {"host", "x-acs-action", "x-acs-version", "x-acs-date", "x-acs-signature-nonce", "x-acs-content-sha256"}
)

# Longer texts are not repeated in an error message.
_SHOWN_CHARACTERS_MAX = 4096


@dataclass(frozen=True)
class SignedRequest:
    """A request as it came: `query` and `form` decoded with blank values kept, header names in lower case.

    A `body` of None has not been read yet; its reader must compare it with the hash by `check_body`.
    """

    method: str
    path: str
    query: list[tuple[str, str]]
    form: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes | None

    @cached_property
    def parameters(self) -> dict[str, str]:
        """Query and form in one: the form wins over the query, and within each the last of one name wins.

        RPC v1 signs exactly this map, so it is also the only one an action may read its arguments from.
        """
        return {**dict(self.query), **dict(self.form)}


class Claim(msgspec.Struct, frozen=True):
    """What a signed request says of itself; nothing of it is proven until `verify` has passed."""

    access_key_id: str
    nonce: str
    timestamp_ms: int
    version: Literal["v1", "v3"]
    signature: str
    signed_headers: tuple[str, ...] = ()
    """The names in a V3 signature's own order."""


def read_claim(request: SignedRequest) -> Claim | None:
    """Who a request claims to be from, or None if it is not signed at all.

    Raises MissingParameter for a request that is signed only in part, and InvalidArgument for another algorithm, a
    time that is not RFC 3339, or a nonce of more than NONCE_CHARACTERS_MAX characters.
    """
    if request.headers.get("authorization", "").startswith("ACS"):
        return _read_v3_claim(request)
    parameters = request.parameters
    if any(name in parameters for name in V1_MARKS):
        return _read_v1_claim(parameters)
    return None


def verify(
    request: SignedRequest, claim: Claim, secret: str, now_ms: int, *, also_signed: Collection[str] = ()
) -> None:
    """Check a claim with the secret of its access key. A V3 signature must cover the headers `also_signed`, too.

    Raises SignatureNotMatch if anything that is signed was changed, a V3 body included, or if a V3 signature leaves
    out a header that must be signed; RequestTimeTooSkewed if it was signed more than 15 minutes from `now_ms`.
    """
    if claim.version == "v3":
        _verify_v3(request, claim, secret, also_signed)
    else:
        _verify_v1(request, claim, secret)
    if abs(now_ms - claim.timestamp_ms) > TIME_WINDOW_MS:
        raise RequestTimeTooSkewed


def _read_v1_claim(parameters: Mapping[str, str]) -> Claim:
    for name, accepted in V1_ALGORITHM.items():
        if parameters.get(name, "") not in accepted:
            raise InvalidArgument(f"{name} {parameters[name][:40]!r} is not supported; sign with HMAC-SHA1.")
    for name in V1_REQUIRED:
        _required(parameters, name)
    return Claim(
        parameters["AccessKeyId"],
        _short_enough(parameters["SignatureNonce"]),
        _time_ms(parameters["Timestamp"]),
        "v1",
        parameters["Signature"],
    )


def _verify_v1(request: SignedRequest, claim: Claim, secret: str) -> None:
    string_to_sign = v1_string_to_sign(request.method, request.parameters)
    if not _equal(v1_signature(secret, string_to_sign), claim.signature):
        # Python's SDK core takes what follows the first colon for the server's string to sign.
        shown = f"; the server signed:{string_to_sign}" if len(string_to_sign) <= _SHOWN_CHARACTERS_MAX else "."
        raise SignatureNotMatch(f"The signature does not match the request{shown}")


def _read_v3_claim(request: SignedRequest) -> Claim:
    authorization = _authorization(request)
    date, nonce = (_required(request.headers, name) for name in ("x-acs-date", "x-acs-signature-nonce"))
    return Claim(
        authorization["Credential"],
        _short_enough(nonce),
        _time_ms(date),
        "v3",
        authorization["Signature"],
        tuple(authorization["SignedHeaders"].split(";")),
    )


def check_body(body: bytes, headers: Mapping[str, str]) -> None:
    """Raises SignatureNotMatch unless the body has the hash that a V3 signature covers."""
    if not _equal(hashlib.sha256(body).hexdigest(), headers["x-acs-content-sha256"]):
        raise SignatureNotMatch("The body does not have the hash that x-acs-content-sha256 names.")


def _verify_v3(request: SignedRequest, claim: Claim, secret: str, also_signed: Collection[str]) -> None:
    names = claim.signed_headers
    if unsigned := sorted(V3_REQUIRED.union(also_signed).difference(names)):
        raise SignatureNotMatch(f"The signature must cover these headers too: {', '.join(unsigned)}.")
    if absent := [name for name in names if name not in request.headers]:
        raise SignatureNotMatch(f"The signature covers headers that did not arrive: {', '.join(absent)[:200]}.")
    if request.body is not None:
        check_body(request.body, request.headers)
    headers = [(name, request.headers[name]) for name in names]
    string_to_sign = v3_string_to_sign(
        request.method, request.path, request.query, headers, request.headers["x-acs-content-sha256"]
    )
    if not _equal(v3_signature(secret, string_to_sign), claim.signature):
        raise SignatureNotMatch


def _authorization(request: SignedRequest) -> dict[str, str]:
    algorithm, _, parts = request.headers["authorization"].partition(" ")
    if algorithm != V3_ALGORITHM:
        raise InvalidArgument(f"The algorithm {algorithm[:40]!r} is not supported; sign with {V3_ALGORITHM}.")
    pairs = (part.partition("=") for part in parts.split(","))
    found = {name.strip(): value.strip() for name, _, value in pairs}
    for name in ("Credential", "SignedHeaders", "Signature"):
        _required(found, name)
    return found


def _short_enough(nonce: str) -> str:
    if len(nonce) > NONCE_CHARACTERS_MAX:
        raise InvalidArgument(f"The signature nonce is longer than {NONCE_CHARACTERS_MAX} characters.")
    return nonce


def _time_ms(text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError:
        raise InvalidArgument(f"{text[:40]!r} is not a time like 2026-01-31T12:00:00Z.") from None


def _required(values: Mapping[str, str], name: str) -> str:
    if not values.get(name):
        raise MissingParameter(f"A signed request needs {name}.")
    return values[name]


def _equal(expected: str, received: str) -> bool:
    return hmac.compare_digest(expected.encode(), received.encode("utf-8", "surrogatepass"))
