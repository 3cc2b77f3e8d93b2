"""The HTTP side of hosted functions: one reply per call, always given when the handler has ended.

Two addresses reach a function: Function Compute's InvokeFunction path, for its SDKs, and the plain
`/{service}/{function}` that is registered with the server. An asynchronous invocation is run like a synchronous one:
telling the caller early is the business of whoever keeps the call, not of the runtime.
"""

import logging
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from flowserver.hosting.context import make_context
from flowserver.hosting.functions import HostedFunction, HostedFunctions
from flowserver.hosting.logs import current_request_id, plain
from flowserver.hosting.runtime import HandlerReply, call_handler

INVOKE_PATH = "/2016-08-15/services/{service}/functions/{function}/invocations"
PLAIN_PATH = "/{service}/{function}"


def build_app(hosted: HostedFunctions) -> ASGIApp:
    """An ASGI application that answers POST on both addresses of every hosted function."""

    async def invoke(request: Request) -> Response:
        service, _, qualifier = request.path_params["service"].partition(".")
        name = request.path_params["function"]
        request_id = request.headers.get("x-fc-request-id") or str(uuid4())
        function = hosted.get(f"{service}/{name}")
        if function is None:
            return _not_found(service, name, request_id)
        qualifier = qualifier or request.headers.get("x-fc-qualifier", "")
        return _render(await _call(function, await request.body(), request_id, qualifier), request_id)

    return Starlette(routes=[Route(path, invoke, methods=["POST"]) for path in (INVOKE_PATH, PLAIN_PATH)])


async def _call(function: HostedFunction, event: bytes, request_id: str, qualifier: str) -> HandlerReply:
    current_request_id.set(request_id)
    plain.info("FC Invoke Start RequestId: %s", request_id)
    reply = await call_handler(function, event, make_context(function, request_id, qualifier))
    if reply.failed:
        logging.getLogger().error("%s", reply.body.decode())
        plain.info("FC Invoke End RequestId: %s, Error: Unhandled function error", request_id)
    else:
        plain.info("FC Invoke End RequestId: %s", request_id)
    return reply


def _render(reply: HandlerReply, request_id: str) -> Response:
    headers = {"X-Fc-Request-Id": request_id}
    if reply.failed:
        headers["X-Fc-Error-Type"] = "UnhandledInvocationError"
        return Response(reply.body, headers=headers, media_type="application/json")
    return Response(reply.body, headers=headers, media_type="application/octet-stream")


def _not_found(service: str, name: str, request_id: str) -> Response:
    message = f"function '{name}' does not exist in service '{service}'"
    document = {"ErrorCode": "FunctionNotFound", "ErrorMessage": message}
    return JSONResponse(document, status_code=404, headers={"X-Fc-Request-Id": request_id})
