"""Words between the nodes of a PostgreSQL database, by LISTEN and NOTIFY. They only hurry what the rows say anyway."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, text

CHANNEL = "flowserver"
NOTICE_BYTES_MAX = 7_900
"""PostgreSQL takes less than 8,000 bytes in one notice."""


class NoticesLost(Exception):
    """The connection is gone on which notices came in."""


def listen(connection: Connection) -> None:
    """Receive notices on this connection from now on; it must commit by itself."""
    connection.execute(text(f"LISTEN {CHANNEL}"))


def notify(connection: Connection, payloads: list[str]) -> None:
    """Send notices, each of `NOTICE_BYTES_MAX` bytes at most."""
    for payload in payloads:
        connection.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": CHANNEL, "payload": payload})


def receive(connection: Connection, seconds: float) -> Iterator[str]:
    """Notices as they come in, for so long; raises NoticesLost when the connection is gone."""
    raw: Any = connection.connection.driver_connection
    try:
        for notice in raw.notifies(timeout=seconds):
            yield notice.payload
    except connection.dialect.loaded_dbapi.Error as error:  # SQLAlchemy knows nothing of this, so it wraps no error
        raise NoticesLost(str(error)) from error
