"""Opening the port, before anything is served: only where the server may listen, and on exactly that address."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from flowserver.api.keyless_access import check_bind, resolve
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed

BACKLOG = 2048
"""Connections that may wait to be accepted while the event loop is busy."""

_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@contextmanager
def listening(host: str, port: int, has_keys: bool) -> Iterator[list[socket.socket]]:
    """Listen on every address of `host`, until the block ends; port 0 becomes one free port for all of them.

    Raises UnsafeBind for an address that needs access keys, CommandFailed if the port cannot be had.
    """
    addresses = _resolve(host)
    check_bind(host, has_keys, resolve=lambda _: addresses)
    listeners: list[socket.socket] = []
    with ExitStack() as opened:
        for address in addresses:
            listener = _open(address, port)
            if listener is not None:
                listeners.append(opened.enter_context(listener))
                port = listener.getsockname()[1]
        if not listeners:
            raise CommandFailed(
                f"cannot listen on {host!r}: this machine does not have that address", ExitCode.NOT_FOUND
            )
        yield listeners


def _resolve(host: str) -> list[str]:
    if not host:
        return []  # getaddrinfo would take it for every address there is
    try:
        return list(dict.fromkeys(resolve(host)))
    except OSError as error:
        raise CommandFailed(f"cannot listen on {host!r}: {error.strerror}", ExitCode.NOT_FOUND) from None
    except UnicodeError:
        raise CommandFailed(f"cannot listen on {host!r}: not a host name", ExitCode.USAGE) from None


def _open(address: str, port: int) -> socket.socket | None:
    """A listening socket; None for an address that this machine lacks, as ::1 of `localhost` without IPv6."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        reason = os.strerror(error.errno or 0)  # the error's own text names the address once more
        advice = "; choose another with --port or FLOWSERVER_PORT" if error.errno == errno.EADDRINUSE else ""
        code = ExitCode.CONFLICT if error.errno == errno.EADDRINUSE else ExitCode.UNREACHABLE
        raise CommandFailed(f"cannot listen on {address} port {port}: {reason}{advice}", code) from None
