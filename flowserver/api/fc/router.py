"""The routes of Function Compute's API: check the caller, find what is asked for, answer as the SDKs expect.

A plain ASGI application, like RPC's. Who calls is checked before anything of the body is read, because the signature
does not cover it.
"""

import re
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from flowserver.api.faults import as_fault
from flowserver.api.fc.answers import Answer, fault
from flowserver.api.fc.async_configs import delete_config, get_config, list_configs, put_config
from flowserver.api.fc.invocations import get_invocation, list_functions, list_invocations, stop_invocation
from flowserver.api.fc.invoke import invoke
from flowserver.api.fc.requests import FcRequest
from flowserver.api.fc.signature import read_claim, verify
from flowserver.api.guard import check_open_request
from flowserver.base.errors import FlowServerError, PathNotSupported
from flowserver.engine.engine import Engine
from flowserver.operations.operations import Operations

VERSION: Final = "2016-08-15"

_SERVICE = r"services/(?P<service>[^/.]+)(?:\.(?P<qualifier>[^/]+))?"
_FUNCTION = rf"{_SERVICE}/functions/(?P<function>[^/]+)"

Route = Callable[[Operations, FcRequest, dict[str, str]], Awaitable[Answer]]
"""Answers a request; the third argument holds what its path names, "" for what it does not."""

ROUTES: tuple[tuple[str, str, Route], ...] = (
    ("POST", rf"{_FUNCTION}/invocations", invoke),
    ("GET", rf"{_FUNCTION}/stateful-async-invocations", list_invocations),
    ("GET", rf"{_FUNCTION}/stateful-async-invocations/(?P<invocation_id>[^/]+)", get_invocation),
    ("PUT", rf"{_FUNCTION}/stateful-async-invocations/(?P<invocation_id>[^/]+)", stop_invocation),
    ("GET", "stateful-async-invocation-functions", list_functions),
    ("PUT", rf"{_FUNCTION}/async-invoke-config", put_config),
    ("GET", rf"{_FUNCTION}/async-invoke-config", get_config),
    ("DELETE", rf"{_FUNCTION}/async-invoke-config", delete_config),
    ("GET", rf"{_FUNCTION}/async-invoke-configs", list_configs),
)
_COMPILED = tuple((method, re.compile(rf"/{VERSION}/{path}/?"), route) for method, path, route in ROUTES)


class FcRoute:
    """Answers requests below /2016-08-15/ over the operations."""

    def __init__(self, operations: Operations, engine: Engine, allowed_hosts: Collection[str]) -> None:
        self._operations = operations
        self._clock = engine.clock
        self._allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = FcRequest.of(scope, receive)
        try:
            await self._check_caller(request)
            route, names = _find(request)
            answer = await route(self._operations, request, names)
        except ClientDisconnect:
            return  # nobody is left to answer
        except FlowServerError as error:
            answer = fault(error)
        except Exception as error:
            answer = fault(as_fault(error, f"request {request.request_id}"))
        await answer.send(send, request.request_id)

    async def _check_caller(self, request: FcRequest) -> None:
        access, headers = self._operations.access, request.headers
        if await access.is_open():
            host, origin = headers.get("host"), headers.get("origin")
            check_open_request(host, origin, self._allowed_hosts, headers.get("sec-fetch-site"))
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            await access.check_bearer(token.strip())
            return
        claim = read_claim(headers)
        secret = await access.secret_of(claim.access_key_id)
        verify(claim, request.method, request.path, headers, secret, self._clock.now_ms())


def _find(request: FcRequest) -> tuple[Route, dict[str, str]]:
    for method, path, route in _COMPILED:
        found = path.fullmatch(request.path) if method == request.method else None
        if found is not None:
            return route, found.groupdict(default="")
    raise PathNotSupported(f"{request.method} {request.path[:200]} is not supported")
