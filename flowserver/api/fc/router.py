"""The routes of Function Compute's API: check the caller, find the operation, answer as the SDKs expect.

A plain ASGI application, like RPC's. The caller is checked before the body is read: the signature of fc2 does not cover
the body, and that of the OpenAPI clients covers a hash, with which the body is compared when it is read.

Two versions have the same routes. In 2016-08-15, which fc2 speaks, a qualifier follows the service's name; in
2021-04-06, which the OpenAPI clients (`alibabacloud-fc-open20210406`) speak, it is a parameter of the query.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from flowserver.api.fc.answers import OPEN_API_PREFIX, Answer, fault
from flowserver.api.fc.async_configs import delete_config, get_config, list_configs, put_config
from flowserver.api.fc.invocations import get_invocation, list_functions, list_invocations, stop_invocation
from flowserver.api.fc.invoke import invoke
from flowserver.api.fc.requests import FcRequest
from flowserver.api.fc.signature import read_claim, verify
from flowserver.api.internal_faults import as_fault
from flowserver.api.keyless_access import check_page
from flowserver.api.rpc.signature import NONCE_KEPT_MS, SignedRequest
from flowserver.api.rpc.signature import read_claim as read_rpc_claim
from flowserver.api.rpc.signature import verify as verify_rpc
from flowserver.base.errors import FlowServerError, InvalidArgument, PathNotSupported
from flowserver.base.request_context import set_route
from flowserver.engine.engine import Engine
from flowserver.operations.callers import EVERYTHING, Caller, Need
from flowserver.operations.operations import Operations

VERSIONS: Final = "/2016-08-15|/2021-04-06"

_QUALIFIER: Final = r"(?:\.(?P<qualifier>[^/]+))?"
_SERVICE = rf"services/(?P<service>[^/.]+){_QUALIFIER}"
_FUNCTION = rf"{_SERVICE}/functions/(?P<function>[^/]+)"
_INVOCATIONS = rf"{_FUNCTION}/stateful-async-invocations"
_INVOCATION = rf"{_INVOCATIONS}/(?P<invocation_id>[^/]+)"
_READING: Final = Need("functions.read")
_WRITING: Final = Need("functions.write")

Route = Callable[[Operations, FcRequest, dict[str, str]], Awaitable[Answer]]
"""Answers a request; the third argument holds what its path names, "" for what it does not."""

ROUTES: tuple[tuple[str, str, Need, Route], ...] = (
    ("POST", rf"{_FUNCTION}/invocations", Need("functions.invoke"), invoke),
    ("GET", _INVOCATIONS, _READING, list_invocations),
    ("GET", _INVOCATION, _READING, get_invocation),
    ("PUT", _INVOCATION, Need("invocations.stop"), stop_invocation),
    ("GET", "stateful-async-invocation-functions", _READING, list_functions),
    ("PUT", rf"{_FUNCTION}/async-invoke-config", _WRITING, put_config),
    ("GET", rf"{_FUNCTION}/async-invoke-config", _READING, get_config),
    ("DELETE", rf"{_FUNCTION}/async-invoke-config", _WRITING, delete_config),
    ("GET", rf"{_FUNCTION}/async-invoke-configs", _READING, list_configs),
)
"""Each with what it needs of its caller."""

_GROUP: Final = re.compile(r"\(\?P<(\w+)>[^()]*\)")


def _without_names(path: str) -> str:
    """`services/{service}/functions/{function}/invocations`; a qualifier is shown as part of the service."""
    return _GROUP.sub(r"{\1}", path.replace(_QUALIFIER, ""))


_COMPILED = tuple(
    (method, re.compile(rf"(?:{VERSIONS})/{path}/?"), need, route, _without_names(path))
    for method, path, need, route in ROUTES
)


class FcRoute:
    """Answers requests below the paths of both versions over the operations."""

    def __init__(self, operations: Operations, engine: Engine, allowed_hosts: Collection[str]) -> None:
        self._operations = operations
        self._clock = engine.clock
        self._allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = FcRequest.of(scope, receive)
        set_route("FC", "")
        try:
            request, caller = await self._admit(request)
            need, route, names, path = _find(request)
            set_route("FC", route.__name__, path)
            caller.require(need)
            answer = await route(self._operations, request, names)
        except ClientDisconnect:
            return  # the client has gone
        except FlowServerError as error:
            self._operations.access.refusals.note(error)
            answer = fault(error)
        except Exception as error:
            answer = fault(as_fault(error, f"request {request.request_id}"))
        await answer.send(send, request.request_id, request.path)

    async def _admit(self, request: FcRequest) -> tuple[FcRequest, Caller]:
        """The request, and its caller, whom the server knows; raises the error for one whom it does not know."""
        access, headers = self._operations.access, request.headers
        if await access.is_open():
            check_page(headers.get("origin"), headers.get("sec-fetch-site"), self._allowed_hosts)
            return request, EVERYTHING
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return request, await access.bearer(token.strip())
        if scheme.startswith("ACS"):
            return await self._admit_open_api(request)
        claim = read_claim(headers)
        secret = await access.secret_of(claim.access_key_id)
        verify(claim, request.method, request.path, headers, secret, self._clock.now_ms(), request.pairs)
        return request, await access.holder_of_key(claim.access_key_id)

    async def _admit_open_api(self, request: FcRequest) -> tuple[FcRequest, Caller]:
        """Check ACS3-HMAC-SHA256, as RPC does; see `_own_headers`."""
        path = quote(request.path, safe="/")
        signed = SignedRequest(request.method, path, request.pairs, [], request.headers, body=None)
        claim = read_rpc_claim(signed)
        assert claim is not None, "the header says that it is signed"
        access = self._operations.access
        secret = await access.secret_of(claim.access_key_id)
        own = _own_headers(request.headers, claim.signed_headers)
        verify_rpc(signed, claim, secret, self._clock.now_ms(), also_signed=own)
        await access.use_nonce(claim.access_key_id, claim.nonce, NONCE_KEPT_MS)
        return replace(request, is_body_signed=True), await access.holder_of_key(claim.access_key_id)


def _own_headers(headers: Mapping[str, str], signed: Collection[str]) -> list[str]:
    """The `x-fc-*` headers that a signature must cover: all, if its client signs more than the service asks for.

    The vendor's clients for Node, Java, Go and others sign `host`, `content-type` and `x-acs-*`, that for Python signs
    each header. The service takes `x-fc-*` unsigned from the former, so this server must, too.
    """
    if all(name in ("host", "content-type") or name.startswith("x-acs-") for name in signed):
        return []
    return [name for name in headers if name.startswith("x-fc-")]


def _find(request: FcRequest) -> tuple[Need, Route, dict[str, str], str]:
    """What serves the request, what it needs, the names in its path, and its path without them."""
    for method, path, need, route, shown in _COMPILED:
        found = path.fullmatch(request.path) if method == request.method else None
        if found is not None:
            return need, route, _names(request, found), f"/{request.path.split('/')[1]}/{shown}"
    raise PathNotSupported(f"{request.method} {request.path[:200]} is not supported")


def _names(request: FcRequest, found: re.Match[str]) -> dict[str, str]:
    """What the path names, with the qualifier from where the version has it."""
    names = found.groupdict(default="")
    if not request.path.startswith(OPEN_API_PREFIX) or "service" not in names:
        return names
    if names["qualifier"]:
        raise InvalidArgument("name the qualifier in the query, not behind the service's name")
    return names | {"qualifier": request.query.get("qualifier", "")}
