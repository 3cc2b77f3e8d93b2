"""The rules that every history obeys, for every flow and after every fault."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

ENTERING = {"StepEntered": "StepExited", "BranchEntered": "BranchExited", "IterationEntered": "IterationExited"}
EXITING = {exited: entered for entered, exited in ENTERING.items()}
STEP_RESULTS = {"StepSucceeded", "StepFailed"}
TASK_RESULTS = {"TaskSucceeded", "TaskFailed", "TaskTimedOut"}
ENDS = {f"Execution{status}": status for status in ("Succeeded", "Failed", "Stopped", "TimedOut")}

Event = dict[str, Any]
"""An event as the API shows it."""


@dataclass(frozen=True, slots=True)
class Open:
    """An entered step or execution that is still open at some event; the innermost comes first."""

    entered: int
    outer: "Open | None"


def violations(events: Sequence[Event], status: str) -> Iterator[str]:
    """All violations in the history of an execution with this status."""
    ids = [event["eventId"] for event in events]
    if ids != list(range(1, len(ids) + 1)):
        yield f"event ids are not dense: {ids}"
        return
    yield from _ends(events, status)
    yield from _nesting(events, has_succeeded=status == "Succeeded")
    yield from _tasks(events)


def _ends(events: Sequence[Event], status: str) -> Iterator[str]:
    starts = [event["eventId"] for event in events if event["type"] == "ExecutionStarted"]
    if starts != [1]:
        yield f"it starts at {starts}"
    ends = [(event["eventId"], ENDS[event["type"]]) for event in events if event["type"] in ENDS]
    if ends != ([] if status == "Running" else [(len(events), status)]):
        yield f"it is {status}, and its history has the ends {ends}"


def _nesting(events: Sequence[Event], *, has_succeeded: bool) -> Iterator[str]:
    """Follow the chain of causes: each exit must close the last entry, once."""
    before: list[Open | None] = [None]
    closed: Counter[int] = Counter()
    results: Counter[int] = Counter()
    for event in events:
        cause = event["scheduleEventId"]
        if not 0 <= cause < event["eventId"]:
            yield f"event {event['eventId']} is caused by {cause}"
            return
        place = before[cause]
        kind = event["type"]
        if kind in ENTERING:
            place = Open(event["eventId"], place)
        elif kind in EXITING or kind in STEP_RESULTS:
            entered = None if place is None else events[place.entered - 1]
            if place is None or entered is None or entered["stepName"] != event["stepName"]:
                yield f"event {event['eventId']} ends what was not entered"
                return
            if kind in STEP_RESULTS:
                results[place.entered] += 1
            else:
                closed[place.entered] += 1
                place = place.outer
        before.append(place)
    for what, counter in (("exited", closed), ("given a result", results)):
        yield from (f"what event {entered} entered is {what} {n} times" for entered, n in counter.items() if n > 1)
    open_ids = [event["eventId"] for event in events if event["type"] in ENTERING and not closed[event["eventId"]]]
    if has_succeeded and open_ids:
        yield f"it has succeeded, and what was entered at {open_ids} is still open"


def _tasks(events: Sequence[Event]) -> Iterator[str]:
    """Each scheduled attempt has at most one result."""
    attempt_of: dict[int, int] = {}
    results: Counter[int] = Counter()
    for event in events:
        kind, number = event["type"], event["eventId"]
        if kind == "TaskScheduled":
            attempt_of[number] = number
        elif kind.startswith("Task"):
            attempt = attempt_of.get(event["scheduleEventId"])
            if attempt is None:
                yield f"event {number} belongs to no attempt"
                return
            attempt_of[number] = attempt
            results[attempt] += kind in TASK_RESULTS
    yield from (f"attempt {attempt} has {count} results" for attempt, count in results.items() if count > 1)
