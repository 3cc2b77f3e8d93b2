"""Asynchronous invocations, as Function Compute's clients read and stop them."""

from collections.abc import Iterator
from functools import partial

from flowserver.api.fc.answers import Answer, document
from flowserver.api.fc.requests import FcRequest
from flowserver.api.large_bodies import page_in_pieces
from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import Json, JsonObject, dump_json
from flowserver.machine.invocations.destination_documents import LATEST, UNHANDLED
from flowserver.machine.invocations.result_of_ended_invocation import UNKNOWN
from flowserver.machine.invocations.states import InvocationStatus
from flowserver.operations.async_invocations import Wanted
from flowserver.operations.function_names import WITHOUT_SERVICE
from flowserver.operations.operations import Operations
from flowserver.operations.pages import Page
from flowserver.store.invocations.rows import InvocationRow


async def get_invocation(operations: Operations, _: FcRequest, names: dict[str, str]) -> Answer:
    """Answer an invocation with its payload and its result."""
    row = await operations.async_invocations.describe(**names)
    state = row.state
    shown = _shown(row) | {"invocationPayload": _text(row.payload)}
    if state.result is not None:
        shown["returnPayload"] = _text(state.result)
    elif state.status is InvocationStatus.FAILED and state.cause is not None:
        shown["returnPayload"] = state.cause  # the function's error document
    return document(shown)


async def list_invocations(operations: Operations, request: FcRequest, names: dict[str, str]) -> Answer:
    """Answer a page of a function's invocations."""
    query = request.query
    wanted = Wanted(
        status=query.get("status") or None,
        id_prefix=query.get("invocationIdPrefix", ""),
        started_from=request.number("startedTimeBegin"),
        started_to=request.number("startedTimeEnd"),
        oldest_first=_one_of(request, "sortOrderByTime", ("desc", "asc")) == "asc",
        with_payload=_one_of(request, "includePayload", ("false", "true")) == "true",
    )
    page = await operations.async_invocations.list(
        **names, wanted=wanted, next_token=query.get("nextToken"), limit=request.number("limit")
    )
    return await operations.encoding.run(partial(_invocations, page, with_payload=wanted.with_payload))


def _invocations(page: Page[InvocationRow], *, with_payload: bool) -> Answer:
    shown = (_shown(row) | ({"invocationPayload": _text(row.payload)} if with_payload else {}) for row in page.items)
    return _page("invocations", shown, page.next_token)


async def stop_invocation(operations: Operations, _: FcRequest, names: dict[str, str]) -> Answer:
    """Stop an invocation."""
    await operations.async_invocations.stop(**names)
    return document({})


async def list_functions(operations: Operations, request: FcRequest, _: dict[str, str]) -> Answer:
    """Answer a page of the functions that have invocations."""
    page = await operations.async_invocations.list_functions(
        next_token=request.query.get("nextToken"), limit=request.number("limit")
    )
    shown: Iterator[Json] = ({"serviceName": service, "functionName": function} for service, function in page.items)
    return await operations.encoding.run(partial(_page, "data", shown, page.next_token))


def _page(name: str, items: Iterator[Json], next_token: str | None) -> Answer:
    page: dict[str, Json | Iterator[Json]] = {name: items}
    return Answer(200, page_in_pieces(page if next_token is None else page | {"nextToken": next_token}))


def _shown(row: InvocationRow) -> JsonObject:
    """What is always shown. `endTime` is 0 until the end, because pollers wait for another."""
    state = row.state
    is_paused = state.status is InvocationStatus.RETRYING
    return {
        "serviceName": row.service or WITHOUT_SERVICE,
        "functionName": row.function,
        "qualifier": row.qualifier or LATEST,
        "invocationId": row.invocation_id,
        "status": str(state.status),
        "startedTime": state.created_at,
        "endTime": state.ended_at or 0,
        "requestId": row.request_id,
        "instanceId": "",
        "durationMs": state.duration_ms or 0,
        "alreadyRetriedTimes": state.retries - is_paused,
        "invocationErrorMessage": _error_message(row),
        "destinationStatus": row.destination_status or "",
        "events": [
            {
                "eventId": number,
                "status": str(event.status),
                "timestamp": event.time_ms,
                "eventDetail": dump_json({"Error": _condition(event.detail)}) if event.detail else "",
            }
            for number, event in enumerate(state.events, 1)
        ],
    }


def _condition(error: str) -> str:
    """The service's name for an error: its own ones (`FC.…`), and one name for all errors of functions."""
    return error if error.startswith("FC.") and error != UNKNOWN else UNHANDLED


def _error_message(row: InvocationRow) -> str:
    """The message of the function's failure, or why it was not called, or why the server has parked the invocation."""
    state = row.state
    if row.parked_error is not None:
        return f"parked: {row.parked_error}"
    if state.error is None or state.status is InvocationStatus.SUCCEEDED:
        return ""
    return (state.cause or state.error) if state.is_over and state.status is not InvocationStatus.FAILED else UNHANDLED


def _text(payload: bytes) -> str:
    return payload.decode("utf-8", "replace")


def _one_of(request: FcRequest, name: str, allowed: tuple[str, ...]) -> str:
    """The parameter's value, the first of the allowed ones if it is not given; raises InvalidArgument."""
    given = (request.query.get(name) or allowed[0]).lower()  # Python's OpenAPI client writes True
    if given not in allowed:
        raise InvalidArgument(f"{name} must be {' or '.join(allowed)}")
    return given
