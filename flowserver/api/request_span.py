"""The span of a request over HTTP, by OpenTelemetry's conventions for HTTP servers.

Its name and attributes hold nothing that the client chose: `http.route` has `{…}` for names, and `url.path`, which the
conventions ask for, is left out, as are the query, Host and the user agent.
"""

import time
from typing import Final

from starlette.types import Scope

from flowserver.base.request_context import RequestContext
from flowserver.base.span_ids import SpanRef, read_traceparent
from flowserver.tracing.spans import FinishedSpan, Tracer

METHODS: Final = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
TRACEPARENT: Final = b"traceparent"


def begin(tracer: Tracer, request: RequestContext, scope: Scope) -> SpanRef | None:
    """Give the request a span, in its caller's trace if it names one; returns the caller's span."""
    values = [value for name, value in scope["headers"] if name == TRACEPARENT]
    parent = read_traceparent(values[0].decode("latin-1")) if len(values) == 1 else None
    request.span = tracer.new_ref(parent)
    return parent


def end(
    tracer: Tracer,
    request: RequestContext,
    parent: SpanRef | None,
    scope: Scope,
    *,
    route: str,
    status: int | str,
    seconds: float,
) -> None:
    """The request is over. `status` is a text if it was not answered."""
    assert request.span is not None
    end_ns = time.time_ns()
    method = scope["method"] if scope["method"] in METHODS else "_OTHER"
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "url.scheme": str(scope.get("scheme", "http")),
        "network.protocol.version": str(scope.get("http_version", "1.1")),
        "flowserver.request_id": request.request_id,
    }
    if request.remote:
        attributes["network.peer.address"] = request.remote
    if request.path:
        attributes["http.route"] = request.path
    if request.api:
        attributes["flowserver.api"] = request.api
    if route:
        attributes["flowserver.route"] = route
    if isinstance(status, int):
        attributes["http.response.status_code"] = status
    has_failed = not isinstance(status, int) or status >= 500
    tracer.add(
        FinishedSpan(
            name=_name(request, method, route),
            kind="server",
            ref=request.span,
            parent=parent,
            start_ns=end_ns - int(seconds * 1e9),
            end_ns=end_ns,
            attributes=attributes,
            links=request.linked_spans,
            error=str(status) if has_failed else None,
        )
    )


def _name(request: RequestContext, method: str, route: str) -> str:
    """`PUT /v1/flows/{flow}`; of RPC, whose actions have one path, `RPC StartExecution`."""
    if request.api == "RPC" or not request.path:
        return " ".join(filter(None, (request.api, route))) or method
    return f"{method} {request.path}"
