"""Tells a flowserver where the hosted functions are, through its REST interface."""

import httpx

from flowserver.base.urls import host_of
from flowserver.hosting.app import INITIALIZE, PRE_STOP, bearer
from flowserver.hosting.errors import HostingConflict, HostingMistake, HostingUnreachable
from flowserver.hosting.functions import HostedFunction, HostedFunctions
from flowserver.hosting.refusals import reason_of

CONNECT_RETRIES = 7
"""With httpx's pauses of 0, 0.5, 1, 2, 4, … seconds a server may take half a minute to come up."""

REPLY_SECONDS = 10


async def register(
    hosted: HostedFunctions,
    hosted_at: str,
    server_url: str,
    token: str | None = None,
    secret: str | None = None,
    connect_retries: int = CONNECT_RETRIES,
) -> None:
    """Register every function with the server; `hosted_at` is this program's base URL without a final slash.

    The server sends the `secret`, if there is one, with each call, as a bearer token.
    Waits a bounded time for a server that is not up yet. Raises HostingUnreachable if it stays away or refuses,
    HostingConflict if it answers 409, HostingMistake if the URL or the token cannot be used.
    """
    check_server_url(server_url)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx.AsyncHTTPTransport(retries=connect_retries)
    try:
        async with httpx.AsyncClient(
            base_url=server_url, headers=headers, transport=transport, timeout=REPLY_SECONDS, trust_env=False
        ) as client:
            for title, function in hosted.items():
                await _put(client, f"/v1/functions/{title}", _registration(function, f"{hosted_at}/{title}", secret))
    except (httpx.InvalidURL, UnicodeError):
        raise HostingMistake(f"{server_url!r} with this token is not the address of a server") from None
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise HostingUnreachable(f"the server at {server_url} cannot be reached: {reason}") from None


def check_server_url(url: str) -> None:
    """Raises HostingMistake if it cannot be the address of a server."""
    if host_of(url) is None:
        raise HostingMistake(f"--server must be a URL such as http://HOST:PORT, not {url!r}")


def _registration(function: HostedFunction, url: str, secret: str | None) -> dict[str, object]:
    wanted: dict[str, object] = {
        "url": url,
        "headers": None if secret is None else {"Authorization": bearer(secret)},
        "timeoutSeconds": function.timeout_seconds,
        "concurrencyMax": function.concurrency_max,
        "waitingMax": function.waiting_max,
    }
    if function.initializer is not None:
        wanted["initializeUrl"] = f"{url}/{INITIALIZE}"
    if function.pre_stop is not None:
        wanted["preStopUrl"] = f"{url}/{PRE_STOP}"
    if function.initializer is not None or function.pre_stop is not None:
        wanted["hookSeconds"] = function.hook_seconds
    return {name: value for name, value in wanted.items() if value is not None}


async def _put(client: httpx.AsyncClient, path: str, body: dict[str, object]) -> None:
    response = await client.put(path, json=body)
    if not response.is_success:
        kind = HostingConflict if response.status_code == httpx.codes.CONFLICT else HostingUnreachable
        raise kind(f"the server refused PUT {path}: {reason_of(response)}")
