"""The program `flowserver functions serve FILE`: hosts the functions of a file until it is told to stop."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from flowserver.base.urls import base_url
from flowserver.hosting.app import build_app
from flowserver.hosting.errors import HostingError
from flowserver.hosting.functions import HostedFunctions, load_functions
from flowserver.hosting.host_file import read_host_file
from flowserver.hosting.logs import plain, set_up_logs
from flowserver.hosting.registration import register

STOP_SECONDS = 5
"""How long calls under way may take to end once the program is told to stop."""


def run(file: Path, server: str | None, listen: str | None, token: str | None) -> int:
    """Host the functions of `file` until SIGTERM or Ctrl-C; options that are not None win over the file.

    Binds the port, then registers the functions with the server if one is named. Returns the exit code: 0 after a
    clean stop, 1 if the functions cannot be hosted or registered.
    """
    set_up_logs()
    try:
        host_file = read_host_file(file)
        hosted = load_functions(host_file, file.parent)
        with bind(listen or host_file.listen) as listener:
            asyncio.run(serve(hosted, listener, server or host_file.server, token))
    except HostingError as error:
        plain.error("%s", error)
        return 1
    return 0


async def serve(hosted: HostedFunctions, listener: socket.socket, server_url: str | None, token: str | None) -> None:
    """Serve on a bound socket and register, until a signal comes; raises HostingError if registering fails."""
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        build_app(hosted, for_local_programs=ip_address(host).is_loopback),
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = uvicorn.Server(config)
    with _stopped_by_signals(server):
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        announcing = asyncio.create_task(_announce(hosted, base_url(host, port), server_url, token))
        await asyncio.wait({serving, announcing}, return_when=asyncio.FIRST_COMPLETED)
        if not announcing.done():
            announcing.cancel()  # told to stop while the server was not up yet
        elif announcing.exception():
            server.should_exit = True
        await serving
        with suppress(asyncio.CancelledError):
            await announcing


async def _announce(hosted: HostedFunctions, hosted_at: str, server_url: str | None, token: str | None) -> None:
    for title, function in hosted.items():
        plain.info("POST %s/%s -> %s", hosted_at, title, function.handler_name)
    if server_url is None:
        plain.info("No server is named, so the functions are not registered anywhere.")
        return
    await register(hosted, hosted_at, server_url, token)
    plain.info("Registered with %s.", server_url)


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
