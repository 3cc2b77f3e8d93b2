"""/v1/functions: the registry of the functions that flows call."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.functions import (
    DeployedFunction,
    Function,
    FunctionHealth,
    FunctionHealthPage,
    FunctionPage,
    OneFunctionHealth,
    PutFunction,
    PutFunctionQuery,
)
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.parameters import FunctionName, ServiceName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.clock import format_instant
from flowserver.base.errors import FunctionNotExists, MissingParameter, UnsupportedMediaType
from flowserver.base.json_values import JsonObject
from flowserver.invokers.function_health import WINDOW_SECONDS
from flowserver.operations.operations import Operations

router = rest_router("/functions", "functions")


@router.get("", summary="List functions", response_model=FunctionPage, responses=problems())
async def list_functions(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """All registered functions, by service and name."""
    found = await operations.functions.list(next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "functions", Function.of)


@router.get("/health", summary="Show the health of functions", response_model=FunctionHealthPage, responses=problems())
async def list_function_health(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """How the functions fare that the node which answers has called: calls, errors and times of the last minutes.

    The numbers are in memory, and gone with the process.
    """
    found = operations.functions.health(next_token=page.next_token, limit=page.limit)
    numbers = operations.functions.numbers
    return await page_answer(
        operations, found, "functions", lambda key: FunctionHealth.of(numbers(key)), **_counted_by(operations)
    )


@router.put(
    "/{service}/{function}",
    summary="Register a function",
    response_model=DeployedFunction,
    response_description="The registration is replaced.",
    responses=problems(MissingParameter, UnsupportedMediaType)
    | {201: {"model": DeployedFunction, "description": "The function is new."}},
    openapi_extra=json_request(PutFunction),
)
async def put_function(
    service: ServiceName,
    function: FunctionName,
    operations: Ops,
    wanted: Annotated[PutFunction, Depends(json_body(PutFunction))],
    query: Annotated[PutFunctionQuery, Query()],
) -> Response:
    """Say where calls of `acs:fc:::services/{service}/functions/{function}` go, whether or not it was said before.

    Calls with a qualifier go to `{service}.{qualifier}` if that is registered, else to `{service}`. The address is
    checked when it is called; a warning says so if the URL alone shows that the server refuses it. A change is in force
    within a second.
    """
    row, is_new = await operations.functions.put(
        service,
        function,
        url=wanted.url,
        headers=wanted.headers,
        timeout_seconds=wanted.timeout_seconds,
        initialize_url=wanted.initialize_url,
        pre_stop_url=wanted.pre_stop_url,
        hook_seconds=wanted.hook_seconds,
        concurrency_max=wanted.concurrency_max,
        waiting_max=wanted.waiting_max,
        dry_run=query.dry_run,
    )
    found = await operations.functions.warnings_of(row)
    return answer(DeployedFunction.with_warnings(row, found), 201 if is_new and not query.dry_run else 200)


@router.get(
    "/{service}/{function}",
    summary="Show a function",
    response_model=Function,
    responses=problems(FunctionNotExists),
)
async def get_function(service: ServiceName, function: FunctionName, operations: Ops) -> Response:
    """The function's registration."""
    return answer(Function.of(await operations.functions.describe(service, function)))


@router.get(
    "/{service}/{function}/health",
    summary="Show the health of a function",
    response_model=OneFunctionHealth,
    responses=problems(FunctionNotExists),
)
async def get_function_health(service: ServiceName, function: FunctionName, operations: Ops) -> Response:
    """How the function fares on the node which answers: calls, errors and times of the last minutes."""
    numbers = FunctionHealth.of(await operations.functions.health_of(service, function))
    return answer(OneFunctionHealth.model_validate({**numbers.model_dump(), **_counted_by(operations)}))


def _counted_by(operations: Operations) -> JsonObject:
    since = format_instant(operations.functions.measured_since)
    return {"node": operations.nodes.node_id, "sinceTime": since, "windowSeconds": WINDOW_SECONDS}


@router.delete(
    "/{service}/{function}", summary="Unregister a function", status_code=204, responses=problems(FunctionNotExists)
)
async def delete_function(service: ServiceName, function: FunctionName, operations: Ops) -> Response:
    """Take a function out of the registry. Calls under way are not touched; later ones fail."""
    await operations.functions.delete(service, function)
    return Response(status_code=204)
