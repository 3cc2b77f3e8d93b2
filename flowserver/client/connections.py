"""The httpx side of both clients: settings of the connection, and how requests, answers and failures map."""

import os
import ssl
from typing import Any, Final

import httpx

from flowserver.base.json_values import InvalidJson, load_json
from flowserver.base.urls import host_of
from flowserver.client.errors import AddressInvalid, ClientError, Unreachable, refusal
from flowserver.client.exchanges import Answer, Request, retry_after_seconds

CONNECT_SECONDS: Final = 10.0


def options_of(url: str, token: str | None, ca_file: str | None) -> dict[str, Any]:
    """Arguments of a client of httpx; raises AddressInvalid."""
    if host_of(url) is None:
        raise AddressInvalid(f"the address of the server must be a URL such as http://HOST:PORT, not {url!r}")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise AddressInvalid("the token holds characters that no token has")
    return {
        "base_url": url,
        "headers": {"authorization": f"Bearer {token}"} if token else {},
        # A proxy of the environment is for the internet; this server is near, and often on 127.0.0.1.
        "trust_env": False,
        "verify": _trust(ca_file) if url.lower().startswith("https:") else False,  # http: nothing to verify
    }


def _trust(ca_file: str | None) -> ssl.SSLContext:
    """Whom to believe; SSL_CERT_FILE and SSL_CERT_DIR are honoured."""
    if ca_file is None and not {"SSL_CERT_FILE", "SSL_CERT_DIR"} & set(os.environ):
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise AddressInvalid(f"the certificates in {ca_file} cannot be read: {error}") from None


def arguments_of(request: Request) -> dict[str, Any]:
    """Arguments of a request of httpx."""
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.query),
        "content": request.content,
        "headers": dict(request.headers),
        "timeout": httpx.Timeout(request.patience_seconds, connect=CONNECT_SECONDS),
    }


def answer_of(response: httpx.Response) -> Answer:
    """The answer as conversations see it."""
    return Answer(response.status_code, response.headers, response.content)


def refusal_of(response: httpx.Response) -> ClientError:
    """The error for a streamed answer that is no success; it was read."""
    try:
        problem = load_json(response.content)
    except InvalidJson:
        problem = None
    error = refusal(response.status_code, problem if isinstance(problem, dict) else {})
    error.retry_after_seconds = retry_after_seconds(response.headers)
    return error


def unreachable(url: str, error: Exception) -> Unreachable:
    """The error for a request without an answer."""
    reason = str(error) or type(error).__name__
    was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.InvalidURL)
    return Unreachable(f"the server at {url} cannot be reached: {reason}", was_sent=was_sent)
