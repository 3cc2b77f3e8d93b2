"""Requests signed as the SDKs sign them, by the published rules; not by the code under test."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from itertools import count
from urllib.parse import quote, urlencode

import httpx

from flowserver.base.clock import Clock, format_instant
from tests.support.access_key import ACCESS_KEY_ID, SECRET

_nonces = count()


class Signer:
    """Signs with one key at the instant of a clock; every request gets its own nonce unless one is given."""

    def __init__(self, clock: Clock, access_key_id: str = ACCESS_KEY_ID, secret: str = SECRET) -> None:
        self._clock = clock
        self._access_key_id = access_key_id
        self._secret = secret

    def v1(self, method: str, parameters: Mapping[str, str], **changes: str) -> dict[str, str]:
        """The parameters with those of RPC v1 added; `changes` are made before signing."""
        signed = {
            **parameters,
            "Version": "2019-03-15",
            "AccessKeyId": self._access_key_id,
            "SignatureMethod": "HMAC-SHA1",
            "SignatureVersion": "1.0",
            "SignatureType": "",
            "SignatureNonce": _nonce(),
            "Timestamp": self._timestamp(),
            **changes,
        }
        canonical = "&".join(f"{_encode(name)}={_encode(signed[name])}" for name in sorted(signed))
        text = f"{method}&%2F&{_encode(canonical)}"
        digest = hmac.new(f"{self._secret}&".encode(), text.encode(), "sha1").digest()
        return {**signed, "Signature": base64.b64encode(digest).decode()}

    def v3(
        self,
        action: str,
        *,
        query: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        host: str = "127.0.0.1:8080",
        path: str = "/",
        content: bytes | None = None,
        **changes: str,
    ) -> httpx.Request:
        """A request whose headers carry a V3 signature over method, path, query, headers and body.

        It is a POST if there is a form or other `content`, else a GET.
        """
        given = content if form is None else urlencode(form).encode()
        method, body = ("GET", b"") if given is None else ("POST", given)
        headers = {
            "host": host,
            "x-acs-action": action,
            "x-acs-version": "2019-03-15",
            "x-acs-date": self._timestamp(),
            "x-acs-signature-nonce": _nonce(),
            "x-acs-content-sha256": hashlib.sha256(body).hexdigest(),
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        if form is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
        names = sorted(headers)
        pairs = "&".join(f"{_encode(name)}={_encode(value)}" for name, value in sorted((query or {}).items()))
        lines = "".join(f"{name}:{headers[name].strip()}\n" for name in names)
        request = "\n".join((method, path, pairs, lines, ";".join(names), headers["x-acs-content-sha256"]))
        text = f"ACS3-HMAC-SHA256\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.new(self._secret.encode(), text.encode(), "sha256").hexdigest()
        signed = f"Credential={self._access_key_id},SignedHeaders={';'.join(names)},Signature={signature}"
        headers["authorization"] = f"ACS3-HMAC-SHA256 {signed}"
        return httpx.Request(method, f"http://127.0.0.1:8080{path}?{pairs}", headers=headers, content=body)

    def _timestamp(self) -> str:
        return format_instant(self._clock.now_ms())[:19] + "Z"


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")


def _nonce() -> str:
    return f"nonce-{next(_nonces)}"
