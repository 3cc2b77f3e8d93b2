"""REST's application: all routes, and answers for unknown paths."""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from flowserver import __version__
from flowserver.api.rest import (
    aliases,
    audit,
    definitions,
    events,
    executions,
    flows,
    functions,
    invocations,
    iterations,
    overview,
    queues,
    redrives,
    schedules,
    secrets,
    server,
    sign_ins,
    steps,
    tasks,
    versions,
)
from flowserver.api.rest.docs import Docs
from flowserver.api.rest.problems import MethodNotAllowed, PathNotFound, problem_response
from flowserver.api.rest.schemas import Schemas
from flowserver.base.errors import FlowServerError, InvalidArgument

ROUTERS = (
    flows.router,
    versions.router,
    aliases.router,
    executions.router,
    executions.all_executions,
    redrives.router,
    steps.router,
    iterations.router,
    events.router,
    schedules.router,
    tasks.router,
    functions.router,
    secrets.router,
    invocations.router,
    queues.router,
    definitions.router,
    overview.router,
    server.router,
    sign_ins.router,
    audit.router,
)


def rest_application(state: State) -> FastAPI:
    """REST over a state that holds `operations`, `settings` and `limits`."""
    app = FastAPI(title="flowserver", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.state = state
    app.router.redirect_slashes = False
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # `include_router` would build each route once more, at a first request
    Docs(ROUTERS).install(app)
    Schemas(state.limits).install(app)
    app.add_exception_handler(HTTPException, _answer_framework_error)
    return app


async def _answer_framework_error(request: Request, error: Any) -> Response:
    """Answer the framework's refusals before a route is found: no such path, no such method."""
    response = problem_response(request, _error_of(request, error))
    response.headers.update(error.headers or {})
    if error.status_code == 405 and (methods := _methods(request.url.path)):
        response.headers["Allow"] = ", ".join(methods)
    return response


def _error_of(request: Request, error: HTTPException) -> FlowServerError:
    if error.status_code == 404:
        return PathNotFound(f"there is nothing at {request.url.path[:200]}")
    if error.status_code == 405:
        return MethodNotAllowed(f"{request.method[:20]} is not possible at {request.url.path[:200]}")
    return InvalidArgument(error.detail)


def _methods(path: str) -> list[str]:
    """All methods of a REST path; the framework names those of its first route only."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    return sorted({method for route in routes if route.path_regex.match(path) for method in route.methods or ()})
