"""Histories that are written as text."""

from flowserver.machine.events import Event, EventType
from tests.support.world import NOW_MS

FAILED_LOOP = (
    "ExecutionStarted - 0",
    "StepEntered pack 1",
    "StepStarted pack 2",
    'IterationEntered pack 3 {"index":0,"total":4}',
    'IterationEntered pack 3 {"index":1,"total":4}',
    "StepEntered label 4",
    "StepSucceeded label 6",
    "StepExited label 7",
    "IterationExited pack 8",
    "StepEntered label 5",
    'StepFailed label 10 {"error":"Torn"}',
    "StepExited label 11",
    "IterationExited pack 12",
    'StepFailed pack 13 {"error":"Torn"}',
    "StepExited pack 14",
    "ExecutionFailed - 15",
)
"""Of a foreach with four items, two of which run at a time: the first succeeded, the second failed."""


def written_events(*lines: str) -> list[Event]:
    """Events that are written `TYPE STEP CAUSE DETAIL`, with ids from 1; one each millisecond after `NOW_MS`."""
    events = []
    for number, line in enumerate(lines, 1):
        type, step, cause, *detail = line.split()
        name = "" if step == "-" else step
        events.append(Event(number, int(cause), EventType(type), name, NOW_MS + number, "".join(detail) or "{}"))
    return events
