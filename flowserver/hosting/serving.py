"""The program `flowserver functions serve FILE`: hosts the functions of a file until it is told to stop."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from flowserver.api.accepting import BoundedServer, raise_file_limit
from flowserver.api.connections import BoundedProtocol
from flowserver.base.limits import Limits
from flowserver.base.urls import base_url
from flowserver.hosting.app import Admission, build_app
from flowserver.hosting.errors import HostingError
from flowserver.hosting.functions import HostedFunctions, load_functions
from flowserver.hosting.host_file import read_host_file
from flowserver.hosting.logs import plain, set_up_logs
from flowserver.hosting.registration import register

LIMITS = Limits()

STOP_SECONDS = 5
"""How long calls under way may take to end once the program is told to stop."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What was asked for at the start; what is not None wins over the file."""

    server: str | None = None
    listen: str | None = None
    advertise: str | None = None
    token: str | None = None
    secret: str | None = None


def run(file: Path, choices: Choices) -> int:
    """Host the functions of `file` until SIGTERM or Ctrl-C.

    Binds the port, then registers the functions with the server if one is named. Returns the exit code: 0 after a
    clean stop, 1 if the functions cannot be hosted or registered.
    """
    set_up_logs()
    raise_file_limit(LIMITS)
    try:
        host_file = read_host_file(file)
        hosted = load_functions(host_file, file.parent)
        chosen = replace(
            choices,
            server=choices.server or host_file.server,
            listen=choices.listen or host_file.listen,
            advertise=choices.advertise or host_file.advertise,
        )
        with bind(chosen.listen or "") as listener:
            asyncio.run(serve(hosted, listener, chosen))
    except HostingError as error:
        plain.error("%s", error)
        return 1
    return 0


async def serve(hosted: HostedFunctions, listener: socket.socket, choices: Choices) -> None:
    """Serve on a bound socket and register, until a signal comes; raises HostingError if registering fails.

    Raises HostingError, too, if others could run the functions, or if the server could not reach them.
    """
    host, port = listener.getsockname()[:2]
    admission = admit(host, choices)
    hosted_at = (choices.advertise or base_url(host, port)).rstrip("/")
    config = uvicorn.Config(
        build_app(hosted, admission),
        http=BoundedProtocol,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=LIMITS.idle_connection_seconds,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = BoundedServer(config, LIMITS)
    with _stopped_by_signals(server):
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        announcing = asyncio.create_task(_announce(hosted, hosted_at, choices))
        await asyncio.wait({serving, announcing}, return_when=asyncio.FIRST_COMPLETED)
        if not announcing.done():
            announcing.cancel()  # told to stop while the server was not up yet
        elif announcing.exception():
            server.should_exit = True
        await serving
        with suppress(asyncio.CancelledError):
            await announcing


def admit(host: str, choices: Choices) -> Admission:
    """Whose calls to answer on this address; raises HostingError if it cannot be told from others'."""
    address = ip_address(host)
    if not address.is_loopback and choices.secret is None:
        raise HostingError(
            f"refusing to listen on {host} without a secret: anybody who can reach it could run the functions. "
            "Listen on 127.0.0.1, or set FUNCTIONS_SECRET (or --secret), which is registered with the functions"
        )
    if address.is_unspecified and choices.server is not None and choices.advertise is None:
        raise HostingError(
            f"{host} is every address: say where the server reaches this program, with --advertise http://HOST:PORT"
        )
    name = None if choices.advertise is None else _host_of(choices.advertise)
    return Admission(address.is_loopback, () if name is None else (name,), choices.secret)


def _host_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment:
            return parts.hostname
    except ValueError:
        pass
    raise HostingError(f"--advertise must be a URL such as http://HOST:PORT, not {url!r}")


async def _announce(hosted: HostedFunctions, hosted_at: str, choices: Choices) -> None:
    for title, function in hosted.items():
        plain.info("POST %s/%s -> %s", hosted_at, title, function.handler_name)
    if choices.server is None:
        plain.info("No server is named, so the functions are not registered anywhere.")
        return
    await register(hosted, hosted_at, choices.server, choices.token, choices.secret)
    plain.info("Registered with %s.", choices.server)


def bind(listen: str) -> socket.socket:
    """Listen on `host:port` (port 0: any free one); raises HostingError if that is not possible."""
    try:
        address = urlsplit(f"//{listen}")
        host, port = address.hostname, address.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise HostingError(f"listen must be host:port, not {listen!r}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # the error's own text names the address once more
        advice = "; choose another with --listen, or any with port 0" if error.errno == errno.EADDRINUSE else ""
        raise HostingError(f"cannot listen on {listen}: {reason}{advice}") from None


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Make SIGTERM and Ctrl-C end the server and nothing else.

    uvicorn raises the signals it caught once more after its shutdown, which would then kill the program; here they
    meet a function that has nothing left to do.
    """

    def stop(*_: object) -> None:
        server.should_exit = True

    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in signals]
    try:
        yield
    finally:
        for number, action in zip(signals, before, strict=True):
            signal.signal(number, action)
