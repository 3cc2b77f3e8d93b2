"""History events: the closed list of their types, and the record of one event."""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from flowserver.base.json_values import Json, JsonObject, load_json_object

LARGE_ELEMENTS: Final = 32
LARGE_CHARACTERS: Final = 1_024
"""A value of at least this many elements or text characters is a part of its own: most events of an execution repeat
the documents of others, and a foreach shows its whole collection to each of its iterations."""


class EventType(StrEnum):
    """Event types of the API (2019-03-15); `ExecutionRedriven` and `StepWaitingForRedrive` are this server's own."""

    EXECUTION_STARTED = "ExecutionStarted"
    EXECUTION_SUCCEEDED = "ExecutionSucceeded"
    EXECUTION_FAILED = "ExecutionFailed"
    EXECUTION_STOPPED = "ExecutionStopped"
    EXECUTION_TIMED_OUT = "ExecutionTimedOut"
    EXECUTION_REDRIVEN = "ExecutionRedriven"
    STEP_ENTERED = "StepEntered"
    STEP_STARTED = "StepStarted"
    STEP_SUCCEEDED = "StepSucceeded"
    STEP_FAILED = "StepFailed"
    STEP_WAITING_FOR_REDRIVE = "StepWaitingForRedrive"
    STEP_EXITED = "StepExited"
    BRANCH_ENTERED = "BranchEntered"
    BRANCH_EXITED = "BranchExited"
    ITERATION_ENTERED = "IterationEntered"
    ITERATION_EXITED = "IterationExited"
    TASK_SCHEDULED = "TaskScheduled"
    TASK_STARTED = "TaskStarted"
    TASK_SUBMITTED = "TaskSubmitted"
    TASK_SUBMIT_FAILED = "TaskSubmitFailed"
    TASK_SUCCEEDED = "TaskSucceeded"
    TASK_FAILED = "TaskFailed"
    TASK_TIMED_OUT = "TaskTimedOut"


class Part(NamedTuple):
    """A large value of a detail: the value of `detail[document][name]`."""

    document: str
    name: str
    value: Json


class Event(msgspec.Struct, frozen=True, gc=False):
    """One history event. Ids count from 1 without gaps."""

    event_id: int
    schedule_event_id: int
    """Id of the event that caused this one; 0 for the first."""
    type: EventType
    step_name: str
    """"" for events of the execution itself."""
    time_ms: int
    detail: str
    """JSON text of an object, with null in place of each of the `parts`."""
    parts: tuple[Part, ...] = ()
    """Large values, which are the same objects wherever one document was made of another. None when it was read."""


def whole_detail(event: Event) -> JsonObject:
    """The detail with its parts, as readers see it."""
    detail = load_json_object(event.detail)
    for part in event.parts:
        detail[part.document][part.name] = part.value
    return detail


def cut(detail: JsonObject) -> tuple[JsonObject, tuple[Part, ...]]:
    """The detail without the large values of its documents, and those values."""
    for document in detail.values():  # nearly all are small, and this is done for every event
        if document.__class__ is dict:
            for value in document.values():
                kind = value.__class__
                if (kind is str or kind is list or kind is dict) and len(value) >= (
                    LARGE_CHARACTERS if kind is str else LARGE_ELEMENTS
                ):
                    return _cut_large(detail)
    return detail, ()


def _cut_large(detail: JsonObject) -> tuple[JsonObject, tuple[Part, ...]]:
    parts = [
        Part(key, name, value)
        for key, document in detail.items()
        if document.__class__ is dict
        for name, value in document.items()
        if _is_large(value)
    ]
    rest = {key: dict(value) if value.__class__ is dict else value for key, value in detail.items()}
    for key, name, _ in parts:
        rest[key][name] = None
    return rest, tuple(parts)


def _is_large(value: Json) -> bool:
    kind = value.__class__
    if kind is list or kind is dict:
        return len(value) >= LARGE_ELEMENTS
    return kind is str and len(value) >= LARGE_CHARACTERS
