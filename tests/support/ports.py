"""Ports of this machine for the programs that tests start, and for servers that are not there."""

import contextlib
import secrets
import socket
from typing import Final

PORTS: Final = range(20_000, 32_000)
"""Below the range of which the kernel gives ports to outgoing connections and to servers that ask for any port."""

_TRIES_MAX: Final = 1_000
_reservations: list[socket.socket] = []


def free_port() -> int:
    """A port on which nothing listens, now or later, but what the caller starts there.

    No test gets the same port while this process runs, and the kernel gives it to no program. So a server can be
    started there at any time, or again; and while there is none, a connection is refused.
    """
    for _ in range(_TRIES_MAX):
        port = secrets.choice(PORTS)
        with contextlib.suppress(OSError):
            _reserve(port)
            with socket.create_server(("127.0.0.1", port)):
                return port
    raise AssertionError("there is no free port")


def _reserve(port: int) -> None:
    """Take the name, of which a machine has one, until this process ends. Raises OSError if another has it."""
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        reservation.bind(f"\0flowserver-tests-port-{port}")
    except OSError:
        reservation.close()
        raise
    _reservations.append(reservation)
