"""/healthz, /readyz and /metrics: for load balancers and Prometheus.

They need no access key: they show only counts, yes and no.
"""

from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from flowserver.api.keyless_access import check_page, refusal_of_stranger
from flowserver.base.errors import AccessDenied


async def _healthz(_request: Request) -> Response:
    return Response('{"status":"ok"}', media_type="application/json")


async def _readyz(request: Request) -> Response:
    if await request.app.state.operations.monitoring.is_ready():
        return Response('{"status":"ready"}', media_type="application/json")
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
    return Response(await state.operations.monitoring.metrics(), media_type=CONTENT_TYPE_LATEST)


METHODS = ("GET", "HEAD")
ROUTES = (
    Route("/healthz", _healthz, include_in_schema=False),
    Route("/readyz", _readyz, include_in_schema=False),
    Route("/metrics", _metrics, include_in_schema=False),
)
"""For an application whose state holds `operations` and `settings` once it serves."""

PATHS = frozenset(route.path for route in ROUTES)
