"""/v1/invocations and below functions: asynchronous invocations that the server has parked, restarted or stopped."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.models.invocations import Invocation, InvocationPage, ParkedQuery
from flowserver.api.rest.parameters import FunctionName, InvocationId, ServiceName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import InvocationNotExists, InvocationNotParked

router = rest_router("", "invocations")

_INVOCATION = "/functions/{service}/{function}/invocations/{invocation}"


@router.get(
    "/invocations/parked", summary="List parked invocations", response_model=InvocationPage, responses=problems()
)
async def list_parked_invocations(operations: Ops, page: Annotated[ParkedQuery, Query()]) -> Response:
    """Asynchronous invocations of all functions that the server could not go on with, and has set aside."""
    parked = await operations.async_invocations.list_parked(next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, parked, "invocations", Invocation.of)


@router.get(
    _INVOCATION, summary="Show an invocation", response_model=Invocation, responses=problems(InvocationNotExists)
)
async def get_invocation(
    service: ServiceName, function: FunctionName, invocation: InvocationId, operations: Ops
) -> Response:
    """An asynchronous invocation, even if its stored row cannot be read whole."""
    return answer(Invocation.of(await operations.async_invocations.describe_header(service, function, invocation)))


@router.post(
    f"{_INVOCATION}/restart",
    summary="Restart a parked invocation",
    response_model=Invocation,
    responses=problems(InvocationNotExists, InvocationNotParked),
)
async def restart_invocation(
    service: ServiceName, function: FunctionName, invocation: InvocationId, operations: Ops
) -> Response:
    """Let an invocation go on that the server had set aside (`parkedError`), once the reason is gone.

    If its function was being called, it is called again, under the same idempotency key and the next attempt number.
    If the reason is still there, the invocation is parked again.
    """
    return answer(Invocation.of(await operations.async_invocations.unpark(service, function, invocation)))


@router.post(
    f"{_INVOCATION}/stop",
    summary="Stop an invocation",
    response_model=Invocation,
    responses=problems(InvocationNotExists),
)
async def stop_invocation(
    service: ServiceName, function: FunctionName, invocation: InvocationId, operations: Ops
) -> Response:
    """Stop an asynchronous invocation for good. A parked one ends at once, and the step that waits for it fails."""
    await operations.async_invocations.stop(service, "", function, invocation)
    return answer(Invocation.of(await operations.async_invocations.describe_header(service, function, invocation)))
