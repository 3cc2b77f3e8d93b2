"""The HTTP side of hosted functions: one reply per call, always given when the handler has ended.

Two addresses reach a function: Function Compute's InvokeFunction path, for its SDKs, and the plain
`/{service}/{function}` that is registered with the server, with the addresses of its hooks below it. An asynchronous
invocation runs like a synchronous one: the server that stores the call answers its caller early, not the runtime.
"""

import asyncio
import base64
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flowserver.api.asgi_receive import disconnected
from flowserver.api.fc.answers import fault_response
from flowserver.api.keyless_access import check_change_by_get, check_open_request
from flowserver.api.middleware import RequestFrame, is_request_id
from flowserver.base.errors import AccessDenied
from flowserver.base.limits import Limits
from flowserver.base.signed_messages import SignatureWrong, Signer
from flowserver.concurrency.waiting import ends_first
from flowserver.hosting.context import make_context
from flowserver.hosting.functions import HostedFunctions
from flowserver.hosting.instances import Instance
from flowserver.hosting.logs import keep_log, tail_of
from flowserver.hosting.runtime import HandlerReply

INVOKE_PATH = "/2016-08-15/services/{service}/functions/{function}/invocations"
PLAIN_PATH = "/{service}/{function}"

INITIALIZE: Final = "initialize"
PRE_STOP: Final = "pre-stop"
"""Hooks are reached below a function's plain address, by the names that custom runtimes have for them."""

Act = Callable[[Instance, Request, str], Awaitable[Response]]
"""What an address does with a function; the last argument is the request's id."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The rule for which calls are answered; by default all are."""

    for_local_programs: bool = False
    """Refuse requests that a browser sends on behalf of a page, by the rules of a server without access keys: else any
    web page could run the functions on its visitor's machine."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names that local programs may use for this one."""
    secret: str | None = None
    """What callers must send as their bearer token, if there is such a secret."""
    signer: Signer | None = None
    """Has the secrets with which calls must be signed, if they must be."""

    async def check_signature(self, request: Request) -> None:
        """Read the request's body, and raise AccessDenied unless it is signed as it must be."""
        if self.signer is not None:
            try:
                self.signer.check(request.headers, await request.body())
            except SignatureWrong as error:
                raise AccessDenied(str(error)) from None

    def check(self, request: Request) -> None:
        """Raises AccessDenied."""
        headers = request.headers
        if self.for_local_programs:
            site = headers.get("sec-fetch-site")
            check_open_request(headers.get("host"), headers.get("origin"), self.allowed_hosts, site)
            if request.method != "POST":
                check_change_by_get(headers)
        if self.secret is not None:
            given = headers.get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(given, bearer(self.secret).encode()):
                raise AccessDenied("the Authorization header does not hold the secret of this program")


def bearer(secret: str) -> str:
    """The Authorization header of callers that know the secret."""
    return f"Bearer {secret}"


def build_app(hosted: HostedFunctions, admission: Admission = Admission()) -> Starlette:
    """An ASGI application that answers POST on both addresses of every hosted function, and its hooks' addresses."""
    instances = {title: Instance(function) for title, function in hosted.items()}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.gather(*(instance.close() for instance in instances.values()))

    addresses: tuple[tuple[str, str, Act], ...] = (
        ("POST", INVOKE_PATH, _invoke),
        ("POST", PLAIN_PATH, _invoke),
        ("POST", f"{PLAIN_PATH}/{INITIALIZE}", _initialize),
        ("GET", f"{PLAIN_PATH}/{PRE_STOP}", _pre_stop),
    )
    routes = [Route(path, _answering(act, instances, admission), methods=[method]) for method, path, act in addresses]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.add_middleware(
        RequestFrame,
        body_bytes_max=Limits().invocation_payload_bytes_max,
        is_leaving=lambda: False,
        fault_response=fault_response,
    )
    return app


def _answering(
    act: Act, instances: Mapping[str, Instance], admission: Admission
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        service, _, _ = request.path_params["service"].partition(".")
        name = request.path_params["function"]
        given = request.headers.get("x-fc-request-id", "")
        if is_request_id(given):
            request.state.request_id = given
        request_id = str(request.state.request_id)
        try:
            admission.check(request)
            await admission.check_signature(request)
        except AccessDenied as error:
            return _error(403, "AccessDenied", error.message, request_id)
        instance = instances.get(f"{service}/{name}")
        if instance is None:
            return _not_found(service, name, request_id)
        return await act(instance, request, request_id)

    return answer


async def _invoke(instance: Instance, request: Request, request_id: str) -> Response:
    qualifier = request.path_params["service"].partition(".")[2] or request.headers.get("x-fc-qualifier", "")
    context = make_context(instance.function, request_id, qualifier, request.headers)
    event = await request.body()
    lines = keep_log() if request.headers.get("x-fc-log-type") == "Tail" else None
    call = asyncio.create_task(instance.call(event, context))
    if not await ends_first(call, disconnected(request.receive)):
        context.stopped.set()  # the caller has dropped the call, as the server does when an invocation is stopped
    response = _render(await call, request_id)
    if lines is not None:
        response.headers["X-Fc-Log-Result"] = base64.b64encode(tail_of(lines)).decode()
    return response


async def _initialize(instance: Instance, _: Request, request_id: str) -> Response:
    return _hook_response(await instance.initialize(request_id), request_id)


async def _pre_stop(instance: Instance, _: Request, request_id: str) -> Response:
    return _hook_response(await instance.pre_stop(request_id), request_id)


def _hook_response(reply: HandlerReply, request_id: str) -> Response:
    headers = {"X-Fc-Request-Id": request_id}
    if reply.failed:
        return Response(reply.body, 404, headers, "application/json")  # as a custom runtime says it
    return Response(headers=headers)


def _render(reply: HandlerReply, request_id: str) -> Response:
    headers = {"X-Fc-Request-Id": request_id}
    if reply.failed:
        headers["X-Fc-Error-Type"] = "UnhandledInvocationError"
        return Response(reply.body, headers=headers, media_type="application/json")
    return Response(reply.body, headers=headers, media_type="application/octet-stream")


def _not_found(service: str, name: str, request_id: str) -> Response:
    message = f"function '{name}' does not exist in service '{service}'"
    return _error(404, "FunctionNotFound", message, request_id)


def _error(status: int, code: str, message: str, request_id: str) -> Response:
    document = {"ErrorCode": code, "ErrorMessage": message}
    return JSONResponse(document, status_code=status, headers={"X-Fc-Request-Id": request_id})
