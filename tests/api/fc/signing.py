"""Requests signed as Function Compute's clients sign them, by the published rules; not by the code under test."""

import base64
import hmac
from collections.abc import Mapping
from email.utils import formatdate
from urllib.parse import unquote, urlsplit

from tests.support.access_key import ACCESS_KEY_ID, SECRET


def signed_headers(
    method: str,
    url: str,
    now_ms: int,
    headers: Mapping[str, str] | None = None,
    *,
    access_key_id: str = ACCESS_KEY_ID,
    secret: str = SECRET,
) -> dict[str, str]:
    """The headers with a date and a signature added; `url` may be a path with a query."""
    signed = {"date": formatdate(now_ms / 1000, usegmt=True), "content-type": "application/json", **(headers or {})}
    own = sorted((name.lower(), value) for name, value in signed.items() if name.lower().startswith("x-fc-"))
    lines = [method, signed.get("content-md5", ""), signed["content-type"], signed["date"]]
    lines += [f"{name}:{value}" for name, value in own]
    parts = urlsplit(url)
    query = sorted(map(unquote, parts.query.split("&"))) if "/proxy/" in parts.path else []
    text = "\n".join([*lines, unquote(parts.path), *query])
    signature = base64.b64encode(hmac.digest(secret.encode(), text.encode(), "sha256")).decode()
    return {**signed, "authorization": f"FC {access_key_id}:{signature}"}
