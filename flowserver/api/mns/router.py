"""The route of this API: find the call, check the caller, serve the call, answer in XML.

A plain ASGI application: a framework around the one route would cost several times as much as the route.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from flowserver.api.asgi_receive import disconnected, read_body
from flowserver.api.internal_faults import as_fault
from flowserver.api.keyless_access import check_change_by_get, check_page
from flowserver.api.mns import account, queues, topics
from flowserver.api.mns.answers import Answer, fault_answer, send_answer
from flowserver.api.mns.calls import Call, read_query
from flowserver.api.mns.faults import InvalidRequestUrl
from flowserver.api.mns.signature import SignedRequest, check_digest, read_claim, verify
from flowserver.api.permission_recheck import Check, WhileAllowed
from flowserver.base.errors import FlowServerError
from flowserver.base.request_context import set_route
from flowserver.concurrency.waiting import ends_first
from flowserver.engine.engine import Engine
from flowserver.operations.callers import Need
from flowserver.operations.operations import Operations

Serve = Callable[[Operations, Call], Awaitable[Answer]]

CALLS: Final[dict[tuple[str, str], tuple[Serve, Need]]] = {
    ("GET", "/"): (account.get_account, Need(None)),
    ("PUT", "/"): (account.set_account, Need("queues.write")),
    ("GET", "/queues"): (queues.list_queues, Need("queues.read")),
    ("PUT", "/queues/*"): (queues.create_queue, Need("queues.write")),
    ("GET", "/queues/*"): (queues.get_queue, Need("queues.read")),
    ("DELETE", "/queues/*"): (queues.delete_queue, Need("queues.write")),
    ("POST", "/queues/*/messages"): (queues.send, Need("queues.send")),
    ("GET", "/queues/*/messages"): (queues.receive, Need("queues.receive")),
    ("PUT", "/queues/*/messages"): (queues.change_visibility, Need("queues.receive")),
    ("DELETE", "/queues/*/messages"): (queues.delete, Need("queues.receive")),
    ("GET", "/topics"): (topics.list_topics, Need("queues.read")),
    ("PUT", "/topics/*"): (topics.create_topic, Need("queues.write")),
    ("GET", "/topics/*"): (topics.get_topic, Need("queues.read")),
    ("DELETE", "/topics/*"): (topics.delete_topic, Need("queues.write")),
    ("POST", "/topics/*/messages"): (topics.publish, Need("topics.publish")),
    ("GET", "/topics/*/subscriptions"): (topics.list_subscriptions, Need("queues.read")),
    ("PUT", "/topics/*/subscriptions/*"): (topics.subscribe, Need("queues.write")),
    ("GET", "/topics/*/subscriptions/*"): (topics.get_subscription, Need("queues.read")),
    ("DELETE", "/topics/*/subscriptions/*"): (topics.unsubscribe, Need("queues.write")),
}
"""The functions that serve calls, and what each needs of its caller, by method and path; `*` matches a name."""

_PEEKING: Final = Need("queues.read")
"""What a receive needs that is a peek."""

MAY_WAIT: Final = (queues.receive,)
"""Calls that end when their client disconnects, so that no message is handed to a client that has gone."""

AT_ONCE_SECONDS = 0.2
"""The server watches for the client's disconnect only after this time, so that quick answers cost nothing more."""


class MnsRoute:
    """Answers this API's requests over the operations."""

    def __init__(self, operations: Operations, engine: Engine, allowed_hosts: Collection[str]) -> None:
        self._operations = operations
        self._clock = engine.clock
        self._allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; `scope["state"]` holds its `request_id`."""
        request_id = str(scope["state"]["request_id"])
        set_route("MNS", "")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            body = await read_body(receive)
            serve, need, names, path = _call_of(scope["method"], scope["path"])
            set_route("MNS", serve.__name__, path)
            call = Call(names, read_query(scope["query_string"].decode("latin-1")), headers, body)
            changes = serve in MAY_WAIT and not queues.is_peek(call)
            if changes:
                scope["state"]["changes"] = True
            elif serve in MAY_WAIT:
                need = _PEEKING
            request = SignedRequest(scope["method"], _resource(scope), headers, body)
            check = await self._check_caller(request, need, changes)
            if serve in MAY_WAIT:
                with WhileAllowed(check):
                    answer = await _unless_gone(serve(self._operations, call), receive)
            else:
                answer = await serve(self._operations, call)
        except ClientDisconnect:
            return  # the client has gone
        except FlowServerError as error:
            self._operations.access.refusals.note(error)
            answer = fault_answer(error, headers.get("host", ""), request_id)
        except Exception as error:
            answer = fault_answer(as_fault(error, f"request {request_id}"), headers.get("host", ""), request_id)
        await send_answer(send, answer, request_id)

    async def _check_caller(self, request: SignedRequest, need: Need, changes_by_get: bool) -> Check:
        """Check the caller; returns a function that repeats the check of its key and role. Raises a refusal."""
        access = self._operations.access
        headers = request.headers
        if await access.is_open():
            check_page(headers.get("origin"), headers.get("sec-fetch-site"), self._allowed_hosts)
            if changes_by_get:
                check_change_by_get(headers)
            check_digest(request)
            return access.check_open
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            check = partial(access.admit_bearer, token.strip(), need, None)
            await check()
            check_digest(request)
            return check
        claim = read_claim(headers)
        verify(request, claim, await access.secret_of(claim.access_key_id), self._clock.now_ms())
        check = partial(access.admit_holder, claim.access_key_id, need, None)
        await check()
        return check


def _call_of(method: str, path: str) -> tuple[Serve, Need, tuple[str, ...], str]:
    """The function that serves the call, what it needs, the names in its path (every second part), and its path
    without them.

    Raises InvalidRequestUrl.
    """
    parts = path.removesuffix("/").split("/")[1:]
    pattern = "/".join(("", *("*" if index % 2 else part for index, part in enumerate(parts)))) or "/"
    found = CALLS.get((method, pattern))
    if found is None:
        raise InvalidRequestUrl(f"there is no call {method} {path[:200]}")
    return *found, tuple(parts[1::2]), pattern.replace("*", "{name}")


def _resource(scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")


async def _unless_gone(serving: Awaitable[Answer], receive: Receive) -> Answer:
    """The answer; raises ClientDisconnect if the client disconnects before it is ready."""
    answering = asyncio.ensure_future(serving)
    try:
        await asyncio.wait([answering], timeout=AT_ONCE_SECONDS)
        if answering.done() or await ends_first(answering, disconnected(receive)):
            return answering.result()
        raise ClientDisconnect
    finally:
        answering.cancel()
