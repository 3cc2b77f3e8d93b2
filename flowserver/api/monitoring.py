"""/healthz, /readyz and /metrics: for load balancers and Prometheus.

They need no access key: they show only counts, yes and no. The metrics that show names of flows, steps and functions
are for callers who may read the server's overview; to others a server with keys answers without them.
"""

import asyncio
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from flowserver.api.keyless_access import check_page, refusal_of_stranger
from flowserver.base.errors import AccessDenied, FlowServerError
from flowserver.base.json_values import JsonObject, dump_json_bytes
from flowserver.operations.access import AccessOperations
from flowserver.operations.callers import Caller, Flows, Need


async def _healthz(_request: Request) -> Response:
    return Response('{"status":"ok"}', media_type="application/json")


async def _readyz(request: Request) -> Response:
    monitoring = request.app.state.operations.monitoring
    if await monitoring.is_ready():
        refusal = monitoring.refusal()
        shown: JsonObject = {"status": "ready"}
        if refusal is not None:
            shown["newWorkRefused"] = refusal
        if (paused := monitoring.deletions_paused()) is not None:
            shown["deletionsPaused"] = paused
        return Response(dump_json_bytes(shown), media_type="application/json")
    return Response('{"status":"not ready"}', 503, media_type="application/json")


async def _metrics(request: Request) -> Response:
    state: Any = request.app.state
    if await state.operations.monitoring.is_open():
        headers, allowed_hosts = request.headers, state.settings.allowed_hosts
        refusal = refusal_of_stranger(request.scope, allowed_hosts)
        try:
            if refusal is not None:
                raise refusal
            check_page(headers.get("origin"), headers.get("sec-fetch-site"), allowed_hosts)
        except AccessDenied as error:
            return PlainTextResponse(error.message, error.status)
        sees_names = state.operations.monitoring.was_open
    else:
        try:
            caller = await _caller(request)
        except AccessDenied as error:
            state.operations.access.refusals.note(error)
            return PlainTextResponse(error.message, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        try:
            sees_names = caller is not None
            if caller is not None:
                caller.require(NAMES_NEED)
        except AccessDenied as error:
            state.operations.access.refusals.note(error)
            return PlainTextResponse(error.message, error.status)
    if state.counts_of_front is not None:
        state.request_metrics.elsewhere, state.engine.metrics.spans.elsewhere = await state.counts_of_front()
    text = await state.operations.monitoring.metrics(with_names=sees_names)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


async def _caller(request: Request) -> Caller | None:
    """The holder of the token that the request has; None without one. Raises AccessDenied for an unknown token.

    None, too, while the database cannot say: what remains of the metrics tells that the database is away.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    access: AccessOperations = request.app.state.operations.access
    try:
        async with asyncio.timeout(TOKEN_SECONDS):
            return await access.bearer(token.strip())
    except AccessDenied:
        raise
    except (SQLAlchemyError, FlowServerError, TimeoutError):
        return None


NAMES_NEED = Need("server.read", Flows.ALL)

TOKEN_SECONDS: Final = 3.0
"""How long the look-up of a token may take before the metrics are sent without names."""

METHODS = ("GET", "HEAD")
ROUTES = (
    Route("/healthz", _healthz, include_in_schema=False),
    Route("/readyz", _readyz, include_in_schema=False),
    Route("/metrics", _metrics, include_in_schema=False),
)
"""For an application whose state holds `operations` and `settings` once it serves."""

PATHS = frozenset(route.path for route in ROUTES)
