"""Histories that are written as text."""

from flowserver.machine.events import Event, EventType
from tests.support.world import NOW_MS


def written_events(*lines: str) -> list[Event]:
    """Events that are written `TYPE STEP CAUSE DETAIL`, with ids from 1; one each millisecond after `NOW_MS`."""
    events = []
    for number, line in enumerate(lines, 1):
        type, step, cause, *detail = line.split()
        name = "" if step == "-" else step
        events.append(Event(number, int(cause), EventType(type), name, NOW_MS + number, "".join(detail) or "{}"))
    return events
