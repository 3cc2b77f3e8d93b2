"""Histories as they happen: server-sent events, read without I/O, and where to go on when the connection breaks."""

from collections.abc import Iterator
from typing import Final

from flowserver.base.json_values import InvalidJson, load_json
from flowserver.client.errors import ClientError, Unreachable
from flowserver.client.exchanges import ANSWER_DEPTH_MAX, Request
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
    away for `outage_seconds` and `retries` further connections have failed.
    """

    def __init__(self, flow: str, name: str, after: int, outage_seconds: float, retries: int) -> None:
        self._path = path_of("flows", flow, "executions", name, "events", "stream")
        self._after = after
        self._outage = Outage(outage_seconds, retries=retries)
        self._data: list[str] = []
        self._is_end = False

    @property
    def ended(self) -> bool:
        """Whether this connection, if it ended in order, has brought all.

        If it broke, a redrive may follow the end that was read: only a 204 says that nothing is left.
        """
        return self._is_end and not self._data

    def request(self) -> Request:
        """What to ask next."""
        self._data.clear()
        self._is_end = False
        return Request(
            method="GET",
            path=self._path,
            headers={"accept": "text/event-stream", "last-event-id": str(self._after)},
            repeatable=True,
            patience_seconds=SILENCE_SECONDS,
        )

    def read(self, line: str) -> Iterator[Event]:
        """The event that this line completes, if it does."""
        if self.is_silent(line):
            self._outage.over()
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and self._data:
            event = _event("\n".join(self._data))
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

        Raises the error if there is no point in a further one.
        """
        return self._outage.pause_seconds(error or Unreachable("the server ends the connection again and again"))


def _event(data: str) -> Event:
    try:
        return typed(Event, load_json(data, ANSWER_DEPTH_MAX))
    except InvalidJson:
        raise Unreachable("what answers is not a flowserver") from None
