"""What all REST routes share: their path prefix, the check of callers, and the answers to failures."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from flowserver.api.internal_faults import as_fault
from flowserver.api.permission_recheck import WhileAllowed
from flowserver.api.rest.answers import ExactJson
from flowserver.api.rest.auth import authorise
from flowserver.api.rest.needs import NEEDS
from flowserver.api.rest.problems import PathNotFound, problem_response
from flowserver.api.rest.validation import explained
from flowserver.base.errors import FlowServerError, InvalidArgument
from flowserver.operations.access import AccessOperations
from flowserver.operations.operations import Operations

# The framework calls what is not `async` in a thread, which costs more than all else of a small request.


async def _operations(request: Request) -> Operations:
    operations: Operations = request.app.state.operations
    return operations


Ops = Annotated[Operations, Depends(_operations)]
"""The operations, as a route's parameter."""


async def _allowed(request: Request) -> WhileAllowed:
    return WhileAllowed(request.state.check)


Allowed = Annotated[WhileAllowed, Depends(_allowed)]
"""A block for what may take long: it ends when the caller's key does."""


class RestRoute(APIRoute):
    """A route that answers its failures as problem documents.

    Servers decode a path before it is divided, so an encoded `/` in a name would lead to another resource; it leads to
    none.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        assert self.name in NEEDS, f"the route {self.name} does not say what it needs of its caller"

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's function, with its failures answered."""
        serve = super().get_route_handler()

        async def serve_or_explain(request: Request) -> Response:
            try:
                _require_plain_slashes(request)
                return await serve(request)
            except Exception as error:
                known = _error_of(request, error)
                access: AccessOperations = request.app.state.operations.access
                access.refusals.note(known)
                return problem_response(request, known)

        return serve_or_explain


def _require_plain_slashes(request: Request) -> None:
    if b"%2f" in request.scope.get("raw_path", b"").lower():
        raise PathNotFound("there is nothing at this path: no name may contain `/`, not even encoded as %2F")


def _error_of(request: Request, error: Exception) -> FlowServerError:
    match error:
        case FlowServerError():
            return error
        case RequestValidationError():
            return explained(error.errors())
        case ClientDisconnect():
            return InvalidArgument("the request ended before its body did")  # the client has gone
    return as_fault(error, f"request {getattr(request.state, 'request_id', '')}")


def rest_router(prefix: str, tag: str, check: Callable[..., Awaitable[None]] = authorise) -> APIRouter:
    """A router below /v1 whose routes all check the caller before they read the request."""
    return APIRouter(
        prefix=f"/v1{prefix}",
        tags=[tag],
        route_class=RestRoute,
        dependencies=[Depends(check)],
        default_response_class=ExactJson,
        generate_unique_id_function=lambda route: route.name,
    )
