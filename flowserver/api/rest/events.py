"""/v1/flows/{flow}/executions/{execution}/events: histories, in pages and live."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Annotated

from fastapi import Header, Query
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from flowserver.api.large_bodies import in_pieces
from flowserver.api.middleware import STALLED_SECONDS, AnswerStalled
from flowserver.api.rest.answers import page_answer
from flowserver.api.rest.models.events import Event, EventPage, EventQuery, StreamQuery, shown
from flowserver.api.rest.models.shared_types import Resource
from flowserver.api.rest.models.steps import StepChanges
from flowserver.api.rest.parameters import ExecutionName, FlowName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import AccessDenied, ExecutionNotExists, FlowNotExists, InvalidArgument
from flowserver.base.json_values import JsonObject, dump_json_bytes
from flowserver.operations.held_requests import HeldPlace
from flowserver.operations.history_search import EVENT_ID_MAX, PlacedEvent
from flowserver.operations.live_histories import Page
from flowserver.operations.step_changes import StepChanges as Changes
from flowserver.store.executions.history_search import EventFilter

router = rest_router("/flows/{flow}/executions/{execution}/events", "executions")

STEPS = "steps"
"""The name of messages with changes of the step summary; those with events have none."""

STREAM_EXAMPLE = """\
id: 2
data: {"eventId":2,"scheduleEventId":1,"type":"StepEntered","stepName":"charge",\
"stepPath":null,"time":"2026-01-02T03:04:05.678Z","detail":{"input":{"orderId":4711},"local":{}}}

"""


def _message_schema(data: type[Resource], name: str, schema: JsonObject) -> JsonObject:
    """A message of the stream, which has this data, and a field of this name."""
    content = {"$ref": f"#/components/schemas/{data.__name__}"}
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": content}
    return {"type": "object", "properties": {name: schema, "data": text}, "required": [name, "data"]}


STREAM = {
    "schema": {
        "type": "string",
        "description": "Server-sent events.",
        "contentMediaType": "text/event-stream",
        "contentSchema": {
            "type": "array",
            "items": {
                "oneOf": [
                    _message_schema(Event, "id", {"type": "string", "description": "The event's id."}),
                    _message_schema(StepChanges, "event", {"const": STEPS, "description": "Only with `steps`."}),
                ]
            },
        },
    },
    "example": STREAM_EXAMPLE,
}

LastEventId = Annotated[
    int | None,
    Header(
        ge=0, le=EVENT_ID_MAX, description="Id of the last event that the client has; browsers send it by themselves."
    ),
]


@router.get("", summary="List events", response_model=EventPage, responses=problems(FlowNotExists, ExecutionNotExists))
async def list_events(
    flow: FlowName, execution: ExecutionName, operations: Ops, query: Annotated[EventQuery, Query()]
) -> Response:
    """The history of an execution, in order or backwards; all of it, or the events of a step or of some types.

    `step` may be a name or a path: `pack[17].label` is a step in iteration 17 of the foreach `pack`, `pack[].label`
    that step in all iterations, `pack[17]` everything in that iteration, `ship[1].book` a step of the second branch,
    and `check.refund` a step in an option of a choice. The first request for a path reads the whole history.

    `path` names one step exactly: `pack` is the foreach itself, and `pack[17]` the begin and end of that iteration.

    With `step`, `path` or `type` a page may be short, or even empty, and have a `nextToken` all the same, if the server
    has looked at very many events that do not match: go on until `nextToken` is null.
    """
    wanted = EventFilter(
        types=frozenset(query.type or ()),
        is_backwards=query.order == "desc",
        after_event_id=query.after if query.next_token is None or query.order == "desc" else 0,
        before_event_id=query.before,
    )
    page = await operations.history_search.search(
        flow,
        execution,
        wanted,
        step=query.step,
        path=query.path,
        with_paths=query.paths,
        next_token=query.next_token,
        limit=query.limit,
    )
    return await page_answer(operations, page, "events", Event.of_placed)


@router.get(
    "/stream",
    summary="Follow events",
    response_class=EventSourceResponse,
    responses=problems(FlowNotExists, ExecutionNotExists)
    | {
        200: {"content": {"text/event-stream": STREAM}},
        204: {"description": "The execution is over and there are no further events."},
    },
    response_description="Events as they happen; the stream ends after the execution's last one.",
)
async def stream_events(
    flow: FlowName,
    execution: ExecutionName,
    operations: Ops,
    query: Annotated[StreamQuery, Query()],
    request: Request,
    last_event_id: LastEventId = None,
) -> Response:
    """The history as server-sent events: past ones at once, further ones as they happen.

    The `data` of each is an event as in the listing, its `id` the event's id. The stream ends with the execution; while
    that is parked, the stream stays open. A client that reconnects with `Last-Event-ID` misses nothing; when nothing is
    left it is answered 204, which makes browsers stop. Comment lines keep idle connections open. With `paths` or
    `steps` the first request for an execution reads its whole history.

    With `steps` a message `event: steps`, without an id, comes before events that change the
    step summary: who has the summary after the event `after`, or after a later one, replaces the steps that
    it names, and appends those that are new. Its `lastEventId` is that of the last of these events, or a later one.
    """
    after = query.after if last_event_id is None else last_event_id
    row = await operations.executions.describe(flow, execution)
    histories = operations.live_histories
    if row.stopped_at is not None and not await histories.has_events(row.execution_id, after_event_id=after):
        return Response(status_code=204)
    if query.paths or query.steps:
        await operations.history_search.check_paths(row.execution_id)  # refused before the reply begins
    follow = partial(
        histories.follow,
        row.execution_id,
        after_event_id=after,
        with_paths=query.paths,
        encode=_encode,
        encode_steps=_changes_message if query.steps else None,
        check=request.state.check,
    )
    return EventStream(_messages(follow), histories.held.take())


class EventStream(EventSourceResponse):
    """Server-sent events, in pieces of several each. A client that reads nothing for STALLED_SECONDS is cut off."""

    def __init__(self, pieces: AsyncIterator[bytes], place: HeldPlace) -> None:
        self._place = place
        super().__init__(pieces, send_timeout=STALLED_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; raises AnswerStalled."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            raise AnswerStalled from None
        finally:
            self._place.release()


def _encode(events: Iterator[PlacedEvent]) -> list[bytes]:
    return in_pieces(map(_message, events))


def _message(placed: PlacedEvent) -> bytes:
    data = dump_json_bytes(shown(placed))
    return b"id: %d\r\ndata: %b\r\n\r\n" % (placed.event.event_id, data)


def _changes_message(changes: Changes) -> bytes:
    return b"event: %b\r\ndata: %b\r\n\r\n" % (STEPS.encode(), dump_json_bytes(StepChanges.of(changes).model_dump()))


async def _messages(follow: Callable[[], AsyncGenerator[Page, None]]) -> AsyncIterator[bytes]:
    try:
        async with aclosing(follow()) as pages:
            async for page in pages:
                for piece in filter(None, page.pieces):
                    yield piece
    except (AccessDenied, InvalidArgument):
        return  # the caller's key was deleted, or the paths take too much by now; the reply has begun, and can only end
