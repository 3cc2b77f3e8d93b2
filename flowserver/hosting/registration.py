"""Tells a flowserver where the hosted functions are, with the client that every program uses."""

import asyncio
from typing import Final

from flowserver.base.urls import host_of
from flowserver.client import AsyncClient
from flowserver.client.errors import AddressInvalid, ClientError, Conflict, Refused, Unreachable
from flowserver.client.paths import function_path
from flowserver.hosting.errors import KEY_WANTED, HostingConflict, HostingMistake, HostingUnreachable
from flowserver.hosting.functions import HostedFunction, HostedFunctions
from flowserver.hosting.http_app import INITIALIZE, PRE_STOP, bearer
from flowserver.hosting.logs import plain

CONNECT_RETRIES: Final = 30
"""How often a server that is not up yet is tried again, PAUSE_SECONDS after each time."""

PAUSE_SECONDS: Final = 1.0

UNAUTHORIZED: Final = 401


async def register(
    hosted: HostedFunctions,
    hosted_at: str,
    server_url: str,
    token: str | None = None,
    secret: str | None = None,
    *,
    ca_file: str | None = None,
    connect_retries: int = CONNECT_RETRIES,
) -> None:
    """Register every function with the server; `hosted_at` is this program's base URL without a final slash.

    The server sends the `secret`, if there is one, with each call, as a bearer token.
    Waits a bounded time for a server that is not up yet, and says so. Raises HostingUnreachable if it stays away or
    refuses, HostingConflict if it answers 409, HostingMistake if the URL, the token or `ca_file` cannot be used.
    """
    check_server_url(server_url)
    try:
        async with AsyncClient(server_url, token, ca_file=ca_file, retries=0) as client:
            for number, (title, function) in enumerate(hosted.items()):
                wanted = _registration(function, f"{hosted_at}/{title}", secret)
                try:
                    await _put(client, title, wanted, 0 if number else connect_retries)
                except Refused as error:
                    reason = KEY_WANTED if error.status == UNAUTHORIZED and token is None else error
                    kind = HostingConflict if isinstance(error, Conflict) else HostingUnreachable
                    raise kind(f"the server refused PUT {function_path(title)}: {reason}") from None
    except AddressInvalid as error:
        raise HostingMistake(str(error)) from None
    except ClientError as error:
        raise HostingUnreachable(str(error)) from None


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


async def _put(client: AsyncClient, title: str, wanted: dict[str, object], retries: int) -> None:
    """Register one function; a server that is not up yet is tried again."""
    failures = 0
    while True:
        try:
            for found in (await client.put_function(title, wanted)).warnings:
                plain.warning("%s: %s", title, found["message"])
            return
        except Unreachable as error:
            if error.was_sent or failures == retries:
                raise
            if not failures:
                plain.info("Waiting for the server: %s", error)
        failures += 1
        await asyncio.sleep(PAUSE_SECONDS)
