"""The exact texts that Alibaba's SDKs sign, and their keyed hashes.

Two algorithms are known: RPC v1 (HMAC-SHA1) and V3 (ACS3-HMAC-SHA256), as aliyun-python-sdk-core,
alibabacloud-tea-openapi and @alicloud/pop-core write them. Nothing here judges a request; `signature` does.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

V3_ALGORITHM = "ACS3-HMAC-SHA256"

_STAYS = re.compile(r"[A-Za-z0-9._~-]*\Z").match


def percent_encode(text: str) -> str:
    """RFC 3986 over UTF-8: letters, digits and `-_.~` stay, all else becomes `%XX` in upper case."""
    if (text.isalnum() and text.isascii()) or _STAYS(text):  # most names and many values; `quote` takes much longer
        return text
    return quote(text, safe="", errors="surrogatepass")


def v1_string_to_sign(method: str, parameters: Mapping[str, str]) -> str:
    """The text of RPC v1: the method and every parameter but `Signature`, sorted by name and encoded twice."""
    signed = [(name, parameters[name]) for name in sorted(parameters) if name != "Signature"]
    pairs = _canonical_pairs(signed)  # holds no other characters that change when it is encoded once more
    return f"{method}&%2F&{pairs.replace('%', '%25').replace('&', '%26').replace('=', '%3D')}"


def v1_signature(secret: str, string_to_sign: str) -> str:
    """Base64 of the HMAC-SHA1 keyed by the secret and an ampersand."""
    digest = hmac.digest(f"{secret}&".encode(), string_to_sign.encode(), "sha1")
    return base64.b64encode(digest).decode()


def v3_string_to_sign(
    method: str,
    path: str,
    query: Iterable[tuple[str, str]],
    signed_headers: Sequence[tuple[str, str]],
    body_sha256: str,
) -> str:
    """The text of V3.

    `query` is decoded; pairs of one name keep their order. `signed_headers` holds lower-case names in the order of
    the request's own SignedHeaders list, with values as received. `body_sha256` is lower-case hexadecimal.
    """
    canonical_request = "\n".join(
        (
            method,
            path,
            _canonical_pairs(sorted(query, key=lambda pair: pair[0])),
            "".join(f"{name}:{value.strip()}\n" for name, value in signed_headers),
            ";".join(name for name, _ in signed_headers),
            body_sha256,
        )
    )
    return f"{V3_ALGORITHM}\n{hashlib.sha256(canonical_request.encode('utf-8', 'surrogatepass')).hexdigest()}"


def v3_signature(secret: str, string_to_sign: str) -> str:
    """Hexadecimal HMAC-SHA256 keyed by the bare secret."""
    return hmac.digest(secret.encode(), string_to_sign.encode(), "sha256").hex()


def _canonical_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return "&".join(f"{percent_encode(name)}={percent_encode(value)}" for name, value in pairs)
