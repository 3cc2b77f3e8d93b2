"""Errors as problem+json (RFC 9457), in replies and in the OpenAPI document. Decides nothing but their shape."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from flowserver.api.rest.answers import ExactJson
from flowserver.api.rest.auth import Unauthenticated
from flowserver.api.rest.models.definition_checks import Diagnostic
from flowserver.api.rest.models.problems import Problem
from flowserver.base.errors import (
    AccessDenied,
    EntityTooLarge,
    FlowServerError,
    InternalServerError,
    InvalidArgument,
    ResourceThrottled,
    ServiceUnavailable,
)
from flowserver.base.json_values import JsonObject
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.operations.redrives import ExecutionEndReported

PROBLEM_JSON = "application/problem+json"
RETRY_SECONDS = 1
"""When a caller may come back that was throttled, or that met a database on its way back."""

ANYWHERE: tuple[type[FlowServerError], ...] = (
    InvalidArgument,
    EntityTooLarge,
    Unauthenticated,
    AccessDenied,
    ResourceThrottled,
    InternalServerError,
    ServiceUnavailable,
)
"""What every operation may answer."""


class PathNotFound(FlowServerError):
    """There is nothing at this path."""

    code = "NotFound"
    status = 404


class MethodNotAllowed(FlowServerError):
    """The path does not take this method."""

    code = "MethodNotAllowed"
    status = 405


class ProblemResponse(ExactJson):
    """A reply that says why there is no other."""

    media_type = PROBLEM_JSON


def problem_response(request: Request, error: FlowServerError) -> Response:
    """The reply to a request that failed."""
    request_id = getattr(request.state, "request_id", "")
    body = problem_of(error, str(request_id)).model_dump()
    given = {key: value for key, value in body.items() if value is not None}
    return ProblemResponse(given, error.status, _headers(error))


def fault_response(error: FlowServerError, request_id: str) -> Response:
    """The reply of the frame around REST; it ends the connection."""
    given = problem_of(error, request_id).model_dump(exclude_none=True)
    return ProblemResponse(given, error.status, {**_headers(error), "Connection": "close"})


def problem_of(error: FlowServerError, request_id: str) -> Problem:
    """The error as the API shows it."""
    found = [Diagnostic.of(each) for each in error.diagnostics] if isinstance(error, DefinitionRejected) else None
    return Problem(
        type=f"urn:flowserver:problem:{error.code}",
        title=_title(type(error)),
        status=error.status,
        detail=error.message,
        code=error.code,
        request_id=request_id,
        diagnostics=found,
        redrive_instead=error.redrive_instead if isinstance(error, ExecutionEndReported) else None,
    )


def _title(error_type: type[FlowServerError]) -> str:
    """The sentence that goes with the code: that of the class which introduced the code."""
    owner = next(each for each in error_type.__mro__ if "code" in vars(each))
    return (owner.__doc__ or "").strip()


def _headers(error: FlowServerError) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": error.challenge}
    if isinstance(error, (ResourceThrottled, ServiceUnavailable)):
        return {"Retry-After": str(RETRY_SECONDS)}
    return {}


def problems(*error_types: type[FlowServerError]) -> dict[int | str, dict[str, Any]]:
    """The `responses` of an operation that may fail so, or in a way that every operation may."""
    by_status: dict[int, list[type[FlowServerError]]] = {}
    for error_type in (*ANYWHERE, *error_types):
        by_status.setdefault(error_type.status, []).append(error_type)
    return {status: _documented(error_types) for status, error_types in by_status.items()}


def _documented(error_types: Sequence[type[FlowServerError]]) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    examples = {each.code: {"summary": _title(each), "value": _example(each())} for each in error_types}
    return {
        "description": " or ".join(f"`{code}`" for code in examples),
        "content": {PROBLEM_JSON: {"schema": schema, "examples": examples}},
    }


def _example(error: FlowServerError) -> JsonObject:
    return problem_of(error, "5e2f8b0c-7b7a-4b57-9d3c-2f6d3b6a9c11").model_dump(exclude_none=True)
