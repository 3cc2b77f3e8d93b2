"""What is read of an execution until it has ended, also when the server is away for a while."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from flowserver.client.errors import ClientError, Refused, Unreachable
from flowserver.client.exchanges import UNAVAILABLE
from flowserver.client.results import Event, Execution

if TYPE_CHECKING:
    from flowserver.client import Client

LOST_SECONDS_MAX: Final = 300.0
"""How long the server may be away, unless the command has a time-out of its own: a restart takes less."""

STEADY_SECONDS: Final = 60.0
"""A server that is lost again within this time counts as away since it was lost first."""

PAUSE_SECONDS: Final = 1.0
"""Before each further request."""


IS_BACK: Final = "The server is back."


@dataclass
class Reconnecting:
    """Reads an execution. While the server is away it asks again; `say` gets a sentence then, and "" afterwards.

    `on_parked` gets the reason if the server has parked the execution, which no event says, and "" once it goes on.

    Raises Unreachable once the server has been away for `lost_seconds_max`; it names `way_back`, a command.
    """

    client: "Client"
    execution: Execution
    say: Callable[[str], None]
    on_parked: Callable[[str], None]
    lost_seconds_max: float
    way_back: str
    _lost_at: float = 0.0
    _found_at: float = float("-inf")

    def events(self) -> Iterator[Event]:
        """The whole history, past and to come: each event once, in order."""
        after = 0
        while True:
            try:
                flow, name = self.execution.flow_name, self.execution.name
                for event in self.client.events(flow, name, after=after, on_silence=self._look):
                    after = event.event_id
                    yield event
            except ClientError as error:
                self._await_server(error)
            else:
                return

    def last_event_id(self) -> int:
        """The last event that there is now: all up to it are the past."""
        while True:
            try:
                newest = self.client.history(self.execution.flow_name, self.execution.name, newest_first=True)
                return max((event.event_id for event in islice(newest, 1)), default=0)
            except ClientError as error:
                self._await_server(error)

    def _look(self) -> None:
        found = self.client.get_execution(self.execution.flow_name, self.execution.name)
        self.on_parked(found.parked_error or "")

    def wait(self) -> Execution:
        """The execution when it has ended."""
        while True:
            try:
                return self.client.wait(self.execution.flow_name, self.execution.name)
            except ClientError as error:
                self._await_server(error)

    def _await_server(self, error: ClientError) -> None:
        """Return when the server answers; raises the error if it is not that the server is away."""
        if time.monotonic() - self._found_at > STEADY_SECONDS:
            self._lost_at = time.monotonic()
        while _is_away(error):
            if time.monotonic() - self._lost_at >= self.lost_seconds_max:
                path = self.execution.path
                raise Unreachable(f"{error}. {path} may still run. Come back: {self.way_back}") from None
            self.say("Lost the server, trying again.")
            pause(PAUSE_SECONDS)
            try:
                self.client.get_execution(self.execution.flow_name, self.execution.name)
            except ClientError as further:
                error = further
            else:
                self._found_at = time.monotonic()
                self.say("")
                return
        raise error


def pause(seconds: float) -> None:
    """Nothing for so long."""
    time.sleep(seconds)


def _is_away(error: ClientError) -> bool:
    return isinstance(error, Unreachable) or (isinstance(error, Refused) and error.status in UNAVAILABLE)
