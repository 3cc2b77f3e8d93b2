"""Histories of executions."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import (
    LIMITS,
    Instant,
    NextToken,
    PageQuery,
    QueryParameters,
    Resource,
    with_examples,
)
from flowserver.base.clock import format_instant
from flowserver.base.json_values import DEPTH_MAX, JsonObject, load_json, raw_json
from flowserver.base.step_paths import STEP_PATTERN
from flowserver.machine.events import Event as HistoryEvent
from flowserver.machine.events import EventType
from flowserver.operations.history_search import EVENT_ID_MAX, PlacedEvent

DETAIL_DEPTH_MAX = DEPTH_MAX + 1
"""A detail holds documents, each as deep as a document may be."""

_EVENT: JsonObject = {
    "eventId": 2,
    "scheduleEventId": 1,
    "type": "StepEntered",
    "stepName": "charge",
    "stepPath": None,
    "time": "2026-01-02T03:04:05.678Z",
    "detail": {"input": {"orderId": 4711}, "local": {}},
}


class EventQuery(PageQuery):
    """Which page of a history."""

    after: Annotated[
        int,
        Field(ge=0, le=EVENT_ID_MAX, description="Only events after the one of this id. `nextToken` overrides it."),
    ] = 0
    before: Annotated[
        int | None, Field(ge=1, le=EVENT_ID_MAX + 1, description="Only events before the one of this id.")
    ] = None
    order: Annotated[Literal["asc", "desc"], Field(description="`desc` begins with the newest event.")] = "asc"
    step: Annotated[
        str | None,
        Field(
            pattern=STEP_PATTERN,
            max_length=LIMITS.step_path_characters_max,
            description="Only events of steps with this name, or of the step with this path.",
        ),
    ] = None
    path: Annotated[
        str | None,
        Field(
            pattern=STEP_PATTERN,
            max_length=LIMITS.step_path_characters_max,
            description="Only events of the step with this path. Unlike in `step`, a bare name is a step of the flow's "
            "own list, and an iteration or branch is without what is in it. Not with `step`.",
        ),
    ] = None
    paths: Annotated[bool, Field(description="Let every event have its `stepPath`.")] = False
    type: Annotated[list[EventType] | None, Field(description="Only events of these types; may be repeated.")] = None


class StreamQuery(QueryParameters):
    """Where a live history begins."""

    after: Annotated[
        int,
        Field(ge=0, le=EVENT_ID_MAX, description="Only events after the one of this id. `Last-Event-ID` overrides it."),
    ] = 0
    paths: Annotated[bool, Field(description="Let every event have its `stepPath`.")] = False
    steps: Annotated[
        bool,
        Field(description="Let messages `steps` with changes of the step summary come before the events."),
    ] = False


class Event(Resource):
    """One event of a history."""

    model_config = with_examples(_EVENT)

    event_id: Annotated[int, Field(description="Counts from 1, without gaps.")]
    schedule_event_id: Annotated[int, Field(description="Id of the event that caused this one; 0 for the first.")]
    type: EventType
    step_name: Annotated[str, Field(description="Empty for events of the execution itself.")]
    step_path: Annotated[
        str | None,
        Field(description="Where the step is: `pack[17].label` in iteration 17 of `pack`. Null unless asked for."),
    ] = None
    time: Instant
    detail: Annotated[dict[str, Any], Field(description="Documents, task tokens or error; depends on the type.")]

    @classmethod
    def of_placed(cls, placed: PlacedEvent) -> Self:
        """The event of a search."""
        return cls.of(*placed)

    @classmethod
    def of(cls, event: HistoryEvent, path: str | None = None) -> Self:
        """The event with its detail as a JSON object."""
        return cls(
            event_id=event.event_id,
            schedule_event_id=event.schedule_event_id,
            type=event.type,
            step_name=event.step_name,
            step_path=path,
            time=format_instant(event.time_ms),
            detail=load_json(event.detail, DETAIL_DEPTH_MAX),
        )


def shown(placed: PlacedEvent) -> JsonObject:
    """What `Event` shows, made for streams in a fifth of the time: the detail's text stays as it is stored."""
    event, path = placed
    is_one_line = "\n" not in event.detail and "\r" not in event.detail  # as this server stores it
    return {
        "eventId": event.event_id,
        "scheduleEventId": event.schedule_event_id,
        "type": event.type,
        "stepName": event.step_name,
        "stepPath": path,
        "time": format_instant(event.time_ms),
        "detail": raw_json(event.detail) if is_one_line else load_json(event.detail, DETAIL_DEPTH_MAX),
    }


class EventPage(Resource):
    """Events in order."""

    model_config = with_examples({"events": [_EVENT], "nextToken": "3"})

    events: list[Event]
    next_token: NextToken
