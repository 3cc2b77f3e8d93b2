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

from flowserver.api.guard import check_open_request
from flowserver.base.errors import AccessDenied
from flowserver.hosting.context import make_context
from flowserver.hosting.functions import HostedFunction, HostedFunctions
from flowserver.hosting.logs import current_request_id, plain
from flowserver.hosting.runtime import HandlerReply, call_handler

INVOKE_PATH = "/2016-08-15/services/{service}/functions/{function}/invocations"
PLAIN_PATH = "/{service}/{function}"


def build_app(hosted: HostedFunctions, *, for_local_programs: bool = False) -> ASGIApp:
    """An ASGI application that answers POST on both addresses of every hosted function.

    With `for_local_programs` it refuses what a browser sends on behalf of a page, by the rules of a server without
    access keys: else any web page could run the functions of whoever looks at it.
    """

    async def invoke(request: Request) -> Response:
        service, _, qualifier = request.path_params["service"].partition(".")
        name = request.path_params["function"]
        request_id = request.headers.get("x-fc-request-id") or str(uuid4())
        if for_local_programs and _is_foreign(request):
            return _refused(request_id)
        function = hosted.get(f"{service}/{name}")
        if function is None:
            return _not_found(service, name, request_id)
        qualifier = qualifier or request.headers.get("x-fc-qualifier", "")
        return _render(await _call(function, await request.body(), request_id, qualifier), request_id)

    return Starlette(routes=[Route(path, invoke, methods=["POST"]) for path in (INVOKE_PATH, PLAIN_PATH)])


def _is_foreign(request: Request) -> bool:
    host, origin, site = (request.headers.get(name) for name in ("host", "origin", "sec-fetch-site"))
    try:
        check_open_request(host, origin, (), site)
    except AccessDenied:
        return True
    return False


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
    return _error(404, "FunctionNotFound", message, request_id)


def _refused(request_id: str) -> Response:
    message = "functions on loopback answer local programs only; Host, Origin or Sec-Fetch-Site names a foreign site"
    return _error(403, "AccessDenied", message, request_id)


def _error(status: int, code: str, message: str, request_id: str) -> Response:
    document = {"ErrorCode": code, "ErrorMessage": message}
    return JSONResponse(document, status_code=status, headers={"X-Fc-Request-Id": request_id})
