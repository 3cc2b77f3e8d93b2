"""What is read of an execution until it has ended, also when the server is away for a while."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from flowserver.client.errors import ClientError, Unreachable, Unreadable
from flowserver.client.outages import Outage, is_away
from flowserver.client.results import Event, Execution

if TYPE_CHECKING:
    from flowserver.client import Client

IS_BACK: Final = "The server is back."


@dataclass
class Reconnecting:
    """Reads an execution. While the server is away it asks again; `say` gets a sentence then, and "" afterwards.

    `on_parked` gets the reason if the server has parked the execution, which no event says, and "" once it goes on.

    Raises Unreachable once the server has been away for `outage_seconds`; it names `way_back`, a command. Raises
    Unreadable if an answer cannot be read twice though the server is there.
    """

    client: "Client"
    execution: Execution
    say: Callable[[str], None]
    on_parked: Callable[[str], None]
    outage_seconds: float
    way_back: str
    _outage: Outage = field(init=False)
    _was_unreadable: bool = False

    def __post_init__(self) -> None:
        self._outage = Outage(self.outage_seconds, retries=0)

    def events(self) -> Iterator[Event]:
        """The whole history, past and to come: each event once, in order."""
        after = 0
        while True:
            try:
                flow, name = self.execution.flow_name, self.execution.name
                further = self.client.events(flow, name, after=after, on_silence=self._look, outage_seconds=0)
                for event in further:
                    after, self._was_unreadable = event.event_id, False
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
                return self.client.wait(self.execution.flow_name, self.execution.name, outage_seconds=0)
            except ClientError as error:
                self._await_server(error)

    def _await_server(self, error: ClientError) -> None:
        """Return when the server answers; raises the error if it is not that the server is away."""
        if isinstance(error, Unreadable) and self._was_unreadable:
            raise error
        self._was_unreadable = isinstance(error, Unreadable)
        while is_away(error):
            try:
                seconds = self._outage.pause_seconds(error)
            except ClientError:
                path = self.execution.path
                raise Unreachable(f"{error}. {path} may still run. Come back: {self.way_back}") from None
            self.say("Lost the server, trying again.")
            pause(seconds)
            try:
                self.client.get_execution(self.execution.flow_name, self.execution.name)
            except ClientError as further:
                error = further
            else:
                self._outage.over()
                self.say("")
                return
        raise error


def pause(seconds: float) -> None:
    """Nothing for so long."""
    time.sleep(seconds)
