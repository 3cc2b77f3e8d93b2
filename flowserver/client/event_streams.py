"""Histories as they happen: server-sent events, read without I/O, and where to go on when the connection breaks."""

import re
from collections.abc import Iterator
from typing import Final

from flowserver.base.json_values import InvalidJson, load_json
from flowserver.client.errors import ClientError, Unreachable, Unreadable
from flowserver.client.exchanges import ANSWER_DEPTH_MAX, Request, backoff_seconds
from flowserver.client.outages import Outage
from flowserver.client.paths import path_of
from flowserver.client.results import Event, typed

SILENCE_SECONDS: Final = 60.0
"""The server sends a comment every few seconds; a connection that is silent for so long is broken."""

LAST: Final = frozenset(("ExecutionSucceeded", "ExecutionFailed", "ExecutionStopped", "ExecutionTimedOut"))
"""Types of events with which an execution ends. Further ones follow if it is redriven."""


class Feed:
    """The events of one execution after the one with the id `after`. Events come once each, in order.

    The connection may break at any place: `request` then asks for what is missing, until the server has been
    away for `outage_seconds` and `retries` further connections have failed. An event that cannot be read is asked for
    once more.
    """

    def __init__(self, flow: str, name: str, after: int, outage_seconds: float, retries: int) -> None:
        self._path = path_of("flows", flow, "executions", name, "events", "stream")
        self._after = after
        self._outage = Outage(outage_seconds, retries=retries)
        self._lines = _Lines()
        self._data: list[str] = []
        self._is_end = False
        self._unreadable_after: int | None = None

    @property
    def ended(self) -> bool:
        """Whether this connection, if it ended in order, has brought all.

        If it broke, a redrive may follow the end that was read: only a 204 says that nothing is left.
        """
        return self._is_end and not self._data

    def request(self) -> Request:
        """What to ask next."""
        self._lines = _Lines()
        self._data.clear()
        self._is_end = False
        return Request(
            method="GET",
            path=self._path,
            headers={"accept": "text/event-stream", "last-event-id": str(self._after)},
            repeatable=True,
            patience_seconds=SILENCE_SECONDS,
        )

    def lines(self, piece: bytes) -> Iterator[str]:
        """The lines that this piece of the stream completes."""
        return self._lines.ended_by(piece)

    def read(self, line: str) -> Iterator[Event]:
        """The event that this line completes, if it does. Raises Unreadable, which is for `broken`."""
        if self.is_silent(line):
            self._outage.over()
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and self._data:
            event = _event("\n".join(self._data), self._after)
            self._data.clear()
            if event.event_id > self._after:
                self._after = event.event_id
                self._outage.over()
                self._is_end = event.type in LAST
                yield event

    def is_silent(self, line: str) -> bool:
        """Whether the line is a comment: the server has had nothing to send for some seconds."""
        return line.startswith(":")

    def broken(self, error: ClientError | None) -> float:
        """The connection ended without the last event: how many seconds to pause before the next.

        Raises the error if there is no point in a further one: an event that cannot be read twice is no outage.
        """
        if isinstance(error, Unreadable):
            if self._unreadable_after == self._after:
                raise error
            self._unreadable_after = self._after
            return backoff_seconds(0)
        return self._outage.pause_seconds(error or Unreachable("the server ends the connection again and again"))


class _Lines:
    """Lines of an event stream. They end at CR, LF or CRLF and nowhere else, as the HTML standard says.

    `str.splitlines`, and so `iter_lines` of httpx, ends lines at U+0085, U+2028 and others too, which JSON may hold.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._ends_with_cr = False

    def ended_by(self, piece: bytes) -> Iterator[str]:
        """The lines that end in this piece, without their ends. Bytes that are no UTF-8 are replaced."""
        if self._ends_with_cr:
            piece = piece.removeprefix(b"\n")
        self._ends_with_cr = piece.endswith(b"\r")
        first, *further = _LINE_END.split(piece)
        self._begun.append(first)
        for line in further:
            yield b"".join(self._begun).decode(errors="replace")
            self._begun = [line]


_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


def _event(data: str, after: int) -> Event:
    try:
        return typed(Event, load_json(data, ANSWER_DEPTH_MAX))
    except (InvalidJson, Unreadable) as error:
        raise Unreadable(f"the event after event {after} cannot be read: {error}") from None
