"""Requests of commands to a running server, over REST."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

import httpx

from flowserver.base.json_values import JsonObject
from flowserver.base.urls import host_of
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.hosting.refusals import reason_of

REPLY_SECONDS = 30

_CODES: Final = {400: ExitCode.FAILED, 404: ExitCode.NOT_FOUND, 409: ExitCode.CONFLICT, 415: ExitCode.FAILED}
"""How a command ends for a status of the answer; for others, the server cannot or will not serve the caller."""


class RestClient:
    """A connection to the server at `url`, with the bearer token if there is one. Every method raises CommandFailed."""

    def __init__(self, url: str, token: str | None) -> None:
        if host_of(url) is None:
            raise CommandFailed(
                f"the address of the server must be a URL such as http://HOST:PORT, not {url!r}", ExitCode.USAGE
            )
        self._url = url
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # A proxy of the environment is for the internet; this server is near, and often on 127.0.0.1.
            self._client = httpx.Client(base_url=url, headers=headers, timeout=REPLY_SECONDS, trust_env=False)
        except (httpx.InvalidURL, UnicodeError):
            raise CommandFailed(f"{url!r} with this token is not the address of a server", ExitCode.USAGE) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._client.close()

    def call(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        """Send one request; returns the object that answers it, empty for an answer without content."""
        return self._send(method, path, json=body)

    def pages(self, path: str) -> Iterator[JsonObject]:
        """All pages of a listing, one by one."""
        token: str | None = None
        while True:
            page = self._send("GET", path, params={"nextToken": token} if token else {})
            yield page
            token = page.get("nextToken")
            if not token:
                return

    def _send(self, method: str, path: str, **content: Any) -> JsonObject:
        try:
            response = self._client.request(method, path, **content)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise CommandFailed(
                f"the server at {self._url} cannot be reached: {reason}", ExitCode.UNREACHABLE
            ) from None
        answer = _object_of(response)
        if not response.is_success:
            code = _CODES.get(response.status_code, ExitCode.UNREACHABLE)
            raise CommandFailed(reason_of(response), code)
        if answer is None:
            raise CommandFailed(f"what answers at {self._url} is not a flowserver", ExitCode.UNREACHABLE)
        return answer


def _object_of(response: httpx.Response) -> JsonObject | None:
    if not response.content:
        return {}
    try:
        answer = response.json()
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
