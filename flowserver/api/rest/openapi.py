"""The OpenAPI document, made from the routes and models."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from flowserver import __version__
from flowserver.api.rest.models.definitions import ValidateDefinition
from flowserver.api.rest.models.executions import StartExecution, StopExecution
from flowserver.api.rest.models.flows import CreateFlow, PutFlow, UpdateFlow
from flowserver.api.rest.models.functions import PutFunction
from flowserver.api.rest.models.problems import Problem
from flowserver.api.rest.models.tasks import TaskFailure, TaskSuccess

BY_HAND = (
    CreateFlow,
    PutFlow,
    UpdateFlow,
    ValidateDefinition,
    StartExecution,
    StopExecution,
    TaskSuccess,
    TaskFailure,
    PutFunction,
    Problem,
)
"""Models that the routes name by reference only, because they read bodies and write problems themselves."""

DESCRIPTION = """\
Flows, executions and functions of this server.

**Access.** Send `Authorization: Bearer TOKEN` with the token that `flowserver keys create` shows once. While the
server has no keys it needs none, and answers programs on its own machine only.

**Documents.** `input` and `output` are JSON objects. Integers keep all their digits; NaN, infinities and text that is
not valid Unicode are refused. Instants are RFC 3339 in UTC; durations are whole seconds.

**Errors** are `application/problem+json` (RFC 9457). Branch on `code`: it is the same in every API of this server.
`requestId`, also in the header `X-Request-Id`, names the request in the server's log. A query parameter or a field
that is not known is an error.

**Listings** come in pages: give `nextToken` of one page to read the next.
"""

TAGS = [
    {"name": "flows", "description": "What can be executed."},
    {"name": "executions", "description": "Flows at work, and their histories."},
    {"name": "tasks", "description": "Callbacks of steps with the pattern `waitForCallback`."},
    {"name": "functions", "description": "Where the functions that flows name are called."},
    {"name": "definitions", "description": "Checks without consequences."},
]


def openapi_document(routers: Sequence[APIRouter]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the routers' operations."""
    routes = [route for router in routers for route in router.routes]
    document = get_openapi(title="flowserver", version=__version__, description=DESCRIPTION, tags=TAGS, routes=routes)
    schemas = document["components"]["schemas"]
    _, by_hand = models_json_schema(
        [(model, "validation") for model in BY_HAND], ref_template="#/components/schemas/{model}"
    )
    schemas.update(by_hand["$defs"])
    _remove_framework_errors(document)
    return document


def _remove_framework_errors(document: dict[str, Any]) -> None:
    """The framework documents a 422 of its own, which this server never sends."""
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
