"""Which events began the attempts of task steps that are under way, so that the end of one gives its beginning.

An attempt is a TaskStarted, perhaps a TaskSubmitted after it, and one of `OUTCOMES`, each of which names the one before
it. Attempts that began elsewhere, or before the process did, end without a beginning.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from flowserver.machine.events import Event, EventType

OUTCOMES: Final = {
    EventType.TASK_SUCCEEDED: "succeeded",
    EventType.TASK_FAILED: "failed",
    EventType.TASK_TIMED_OUT: "timed out",
    EventType.TASK_SUBMIT_FAILED: "failed",
}
"""How an attempt of a task step ends, by the event that says so."""

REMEMBERED_MAX: Final = 20_000
"""Attempts under way whose beginnings are remembered."""


class Begun(NamedTuple):
    """The event that began an attempt, and its instant (ms)."""

    event_id: int
    time_ms: int


class EndedAttempt(NamedTuple):
    """The event that ended an attempt, and its beginning, if that is remembered."""

    event: Event
    begun: Begun | None


class AttemptsUnderWay:
    """The beginnings of attempts, by their executions and the last events that they have."""

    __slots__ = ("_begun", "_remembered_max")

    def __init__(self, remembered_max: int = REMEMBERED_MAX) -> None:
        self._begun: dict[tuple[str, int], Begun] = {}
        self._remembered_max = remembered_max

    def committed(self, execution_id: str, events: Iterable[Event]) -> list[EndedAttempt]:
        """Events of an execution were committed: returns the attempts that they ended."""
        ended = []
        for event in events:
            if event.type is EventType.TASK_STARTED:
                self._note(execution_id, event.event_id, Begun(event.event_id, event.time_ms))
            elif event.type is EventType.TASK_SUBMITTED:
                begun = self._begun.pop((execution_id, event.schedule_event_id), None)
                if begun is not None:
                    self._note(execution_id, event.event_id, begun)
            elif event.type in OUTCOMES:
                begun = self._begun.pop((execution_id, event.schedule_event_id), None)
                ended.append(EndedAttempt(event, begun))
        return ended

    def _note(self, execution_id: str, event_id: int, begun: Begun) -> None:
        """Of an attempt this is the last event; the oldest attempt is forgotten if there are too many."""
        if len(self._begun) >= self._remembered_max:
            del self._begun[next(iter(self._begun))]
        self._begun[execution_id, event_id] = begun
