"""The one RPC route: find the action, check the caller, run it, answer as the SDKs expect.

Method, Host and parameter position do not matter, because they differ between SDK generations. Every answer is a
JSON object with RequestId; every error has Code and a status of 400 or more; no success has Code.

A plain ASGI application: what a framework does around one route costs several times as much as the route.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from flowserver.api.asgi_receive import read_body
from flowserver.api.internal_faults import as_fault
from flowserver.api.keyless_access import check_change_by_get, check_page
from flowserver.api.large_bodies import Header, send_pieces
from flowserver.api.middleware import is_request_id
from flowserver.api.permission_recheck import Check, WhileAllowed
from flowserver.api.rpc.actions import ACTIONS, NOT_CARRIED_OUT
from flowserver.api.rpc.needs import NEEDS
from flowserver.api.rpc.parameters import given
from flowserver.api.rpc.request_rates import RequestRates
from flowserver.api.rpc.signature import NONCE_KEPT_MS, SignedRequest, read_claim, verify
from flowserver.base.clock import Clock
from flowserver.base.errors import (
    ActionNotSupported,
    EntityTooLarge,
    FlowServerError,
    InvalidArgument,
    MissingParameter,
    ResourceThrottled,
    ServiceUnavailable,
    VersionNotSupported,
)
from flowserver.base.json_values import dump_json_bytes
from flowserver.base.limits import Limits
from flowserver.base.request_context import present_request, set_execution, set_route
from flowserver.operations.access import AccessOperations
from flowserver.operations.callers import EVERYTHING, Caller, Need
from flowserver.operations.refusals import Unsigned

READING = ("Describe", "List", "Get")
"""How the names of those actions begin that change nothing."""

WAITING = ("DescribeExecution", "StartSyncExecution")
"""Actions that may take minutes, in which a key can be disabled."""

VERSION = "2019-03-15"
FORM = "application/x-www-form-urlencoded"
FIELDS_MAX = 200
"""Parameters of one request; real ones have at most a few dozen."""

ActionHandler = Callable[[str, Mapping[str, str], str, Caller], Awaitable[list[bytes]]]
"""Carry out one of ACTIONS with these parameters, under a request id, for a caller; returns the pieces of the answer's
body.

A request that fails is a FlowServerError."""

RETRY_AFTER_MS = 1_000
"""When a throttled caller should come back; the newer SDKs read the header `x-acs-retry-after` as milliseconds."""


class RpcRoute:
    """Answers RPC requests; `handler` carries out their actions."""

    def __init__(
        self,
        handler: ActionHandler,
        access: AccessOperations,
        clock: Clock,
        allowed_hosts: Collection[str],
        limits: Limits,
    ) -> None:
        self._handler = handler
        self._access = access
        self._clock = clock
        self._allowed_hosts = allowed_hosts
        self._rates = RequestRates(limits, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; `scope["state"]` holds its `request_id`."""
        request_id = str(scope["state"]["request_id"])
        set_route("RPC", "")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            received = await _receive(scope, headers, receive)
            request_id = scope["state"]["request_id"] = _named_by_client(received) or request_id
            body = await self._answer(received, request_id, scope["state"])
        except ClientDisconnect:
            return  # the client has gone
        except FlowServerError as error:
            self._access.refusals.note(error)
            await _send_fault(send, error, headers, request_id)
        except Exception as error:
            await _send_fault(send, as_fault(error, f"request {request_id}"), headers, request_id)
        else:
            await _send(send, 200, body)

    async def _answer(self, received: SignedRequest, request_id: str, state: dict[str, Any]) -> list[bytes]:
        parameters = received.parameters
        name = given(parameters, "Action") or received.headers.get("x-acs-action")
        if not name:
            raise MissingParameter("the parameter Action is missing; REST is under /v1, interactive docs at /docs")
        if name in NOT_CARRIED_OUT:
            raise ActionNotSupported(NOT_CARRIED_OUT[name])
        if name not in ACTIONS:
            raise ActionNotSupported(f"the action {name[:100]} is not supported")
        set_route("RPC", name, "/")
        version = given(parameters, "Version") or received.headers.get("x-acs-version") or VERSION
        if version != VERSION:
            raise VersionNotSupported(f"API version {version[:40]} is not supported; use {VERSION}")
        changes = state["changes"] = not name.startswith(READING)
        caller, check = await self._check_caller(received, NEEDS[name], changes=changes)
        self._rates.require(name, caller.key_id)
        if name not in WAITING:
            return await self._handler(name, parameters, request_id, caller)
        with WhileAllowed(check):
            return await self._handler(name, parameters, request_id, caller)

    async def _check_caller(self, received: SignedRequest, need: Need, *, changes: bool) -> tuple[Caller, Check]:
        """Raises a refusal, or returns the caller, and how to ask once more whether it is allowed."""
        access = self._access
        headers = received.headers
        if await access.is_open():
            check_page(headers.get("origin"), headers.get("sec-fetch-site"), self._allowed_hosts)
            if changes and received.method != "POST":
                check_change_by_get(headers)
            return EVERYTHING, access.check_open
        flow = given(received.parameters, need.flow) if isinstance(need.flow, str) else None
        set_execution(given(received.parameters, "ExecutionName"))
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            check = partial(access.admit_bearer, token.strip(), need, flow)
            return await check(), check
        claim = read_claim(received)
        if claim is None:
            raise Unsigned("the request is not signed: AccessKeyId and Signature are missing")
        secret = await access.secret_of(claim.access_key_id)
        # A type by which the body has no parameters may have been put there on the way, to hide them.
        also_signed = () if not received.body or _is_form(headers) else ("content-type",)
        verify(received, claim, secret, self._clock.now_ms(), also_signed=also_signed)
        check = partial(access.admit_holder, claim.access_key_id, need, flow)
        caller = await check()
        if changes:  # `LocalActions` uses up the nonce of a request that changes nothing after all
            access.use_nonce_with_change(claim.access_key_id, claim.nonce, NONCE_KEPT_MS)
        else:
            await access.use_nonce(claim.access_key_id, claim.nonce, NONCE_KEPT_MS)
        return caller, check


async def _receive(scope: Scope, headers: Mapping[str, str], receive: Receive) -> SignedRequest:
    body = await read_body(receive)
    return SignedRequest(
        method=scope["method"],
        path=scope["path"],
        query=_fields(_text(scope["query_string"])),
        form=_fields(_text(body)) if _is_form(headers) else [],
        headers=headers,
        body=body,
    )


def _is_form(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() in (FORM, "")


def _text(encoded: bytes) -> str:
    try:
        return encoded.decode()  # SDKs percent-encode all but ASCII; people with curl do not
    except UnicodeDecodeError:
        raise InvalidArgument("the parameters must be UTF-8") from None


def _fields(text: str) -> list[tuple[str, str]]:
    if not text:
        return []
    if "%00" in text or "\0" in text:
        raise InvalidArgument("the parameters must not hold NUL characters")  # PostgreSQL cannot store them
    if text.count("&") >= FIELDS_MAX:
        raise EntityTooLarge(f"a request has at most {FIELDS_MAX} parameters")
    try:  # as `parse_qsl`, which takes three times as long
        pairs = [field.partition("=") for field in text.split("&") if field]
        return [(_decoded(name), _decoded(value)) for name, _, value in pairs]
    except UnicodeDecodeError:
        raise InvalidArgument("the parameters must be percent-encoded UTF-8") from None


def _decoded(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    return unquote_to_bytes(text).decode() if "%" in text else text


def _named_by_client(received: SignedRequest) -> str | None:
    """Older SDKs may name the request themselves; the service then uses that id."""
    wanted = given(received.parameters, "RequestId") or ""
    if not is_request_id(wanted):
        return None
    request = present_request()
    if request is not None:
        request.request_id = wanted
    return wanted


async def _send_fault(send: Send, error: FlowServerError, headers: Mapping[str, str], request_id: str) -> None:
    body = {
        "RequestId": request_id,
        "HostId": headers.get("host", ""),
        "Code": error.code,
        "Message": error.message,
        "Recommend": "",
    }
    if isinstance(error, (ResourceThrottled, ServiceUnavailable)):
        await _send(send, error.status, [dump_json_bytes(body)], (b"x-acs-retry-after", str(RETRY_AFTER_MS).encode()))
    else:
        await _send(send, error.status, [dump_json_bytes(body)])


async def _send(send: Send, status: int, pieces: Sequence[bytes], *more_headers: Header) -> None:
    await send_pieces(send, status, [(b"content-type", b"application/json"), *more_headers], pieces)
