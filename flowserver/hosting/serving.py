"""The program `flowserver functions serve FILE`: hosts the functions of a file until a signal stops it."""

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
from typing import Final
from urllib.parse import urlsplit

import uvicorn

from flowserver.api.bounded_server import BoundedServer, raise_file_limit
from flowserver.api.connections import BoundedProtocol
from flowserver.api.keyless_access import resolve
from flowserver.base.limits import Limits
from flowserver.base.signed_messages import Signer, SigningSecretsInvalid, read_signer
from flowserver.base.urls import base_url, host_of
from flowserver.hosting.errors import HostingConflict, HostingMissing, HostingMistake, HostingUnreachable
from flowserver.hosting.functions import HostedFunctions, load_functions
from flowserver.hosting.host_file import read_host_file
from flowserver.hosting.http_app import Admission, build_app
from flowserver.hosting.logs import plain, set_up_logs
from flowserver.hosting.registration import check_server_url, register

LIMITS = Limits()

ABSENT: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""What the system says of an address that this machine does not have."""

STOP_SECONDS = 5
"""How long calls under way may take to end after the signal to stop."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of the command line; those that are not None win over the file.

    `run` fills in the file's values and the defaults. Without a `server` the functions are not registered.
    """

    server: str | None = None
    listen: str | None = None
    advertise: str | None = None
    token: str | None = None
    secret: str | None = None
    ca_file: str | None = None
    signing_secrets_file: Path | None = None


def server_in(file: Path) -> str | None:
    """The server that the file names, if it does; raises as `run`."""
    return read_host_file(file).server


def run(file: Path, choices: Choices) -> None:
    """Host the functions of `file` until SIGTERM or Ctrl-C.

    Binds the port, then registers the functions with the server, if one is chosen: the file's is not looked at here.
    Raises a HostingError, of the class that says why, if the functions cannot be hosted or registered.
    """
    set_up_logs()
    raise_file_limit(LIMITS)
    host_file = read_host_file(file)
    chosen = replace(
        choices,
        listen=choices.listen or host_file.listen,
        advertise=choices.advertise or host_file.advertise,
    )
    if chosen.server is not None:
        check_server_url(chosen.server)
    hosted = load_functions(host_file, file.parent)
    with bind(chosen.listen or "") as listener:
        asyncio.run(serve(hosted, listener, chosen))


async def serve(hosted: HostedFunctions, listener: socket.socket, choices: Choices) -> None:
    """Serve on a bound socket and register, until a signal comes; raises what `register` and `admit` raise."""
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
            announcing.cancel()  # stopped while the server was not up yet
        elif announcing.exception():
            server.should_exit = True
        await serving
        with suppress(asyncio.CancelledError):
            await announcing


def admit(host: str, choices: Choices) -> Admission:
    """The rule for calls to answer on this address; raises HostingMistake if no rule would keep other callers out."""
    address = ip_address(host)
    signer = None if choices.signing_secrets_file is None else _signer_in(choices.signing_secrets_file)
    if not address.is_loopback and choices.secret is None and signer is None:
        raise HostingMistake(
            f"refusing to listen on {host} without a secret: anybody who can reach it could run the functions. "
            "Listen on 127.0.0.1, or set FUNCTIONS_SECRET (or --secret), which is registered with the functions, "
            "or let the server sign its calls (--signing-secrets)"
        )
    if address.is_unspecified and choices.server is not None and choices.advertise is None:
        raise HostingMistake(
            f"{host} is every address: say where the server reaches this program, with --advertise http://HOST:PORT"
        )
    if choices.advertise is None:
        return Admission(address.is_loopback, (), choices.secret, signer)
    name = host_of(choices.advertise)
    if name is None:
        raise HostingMistake(f"--advertise must be a URL such as http://HOST:PORT, not {choices.advertise!r}")
    return Admission(address.is_loopback, (name,), choices.secret, signer)


def _signer_in(file: Path) -> Signer:
    try:
        return read_signer(file)
    except SigningSecretsInvalid as error:
        raise HostingMistake(str(error)) from None


async def _announce(hosted: HostedFunctions, hosted_at: str, choices: Choices) -> None:
    for title, function in hosted.items():
        plain.info("POST %s/%s -> %s", hosted_at, title, function.handler_name)
    if choices.server is None:
        plain.info("Not registered with a server, because of --no-register.")
        return
    await register(hosted, hosted_at, choices.server, choices.token, choices.secret, ca_file=choices.ca_file)
    plain.info("Registered with %s.", choices.server)


def bind(listen: str) -> socket.socket:
    """Listen on `host:port` (port 0: any free one).

    Raises HostingMistake for another form, HostingMissing if this machine does not have the address, HostingConflict
    if the port is in use, HostingUnreachable if the system refuses it.
    """
    try:
        address = urlsplit(f"//{listen}")
        host, port = address.hostname, address.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise HostingMistake(f"listen must be host:port, not {listen!r}")
    try:
        addresses = resolve(host)
    except UnicodeError:
        raise HostingMistake(f"listen must be host:port, not {listen!r}") from None
    except OSError as error:
        raise HostingMissing(f"cannot listen on {listen}: {error.strerror}") from None
    chosen = next((address for address in addresses if ":" not in address), addresses[0])
    try:
        return socket.create_server((chosen, port), family=socket.AF_INET6 if ":" in chosen else socket.AF_INET)
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # the error's own text names the address once more
        if error.errno == errno.EADDRINUSE:
            advice = "choose another with --listen, or any with port 0"
            raise HostingConflict(f"cannot listen on {listen}: {reason}; {advice}") from None
        kind = HostingMissing if error.errno in ABSENT else HostingUnreachable
        raise kind(f"cannot listen on {listen}: {reason}") from None


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
