"""Calls of functions that the front makes for the engine."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from multidict import CIMultiDict

from flowserver.base.limits import Limits
from flowserver.front.link import Handler, Link, LinkLost
from flowserver.invokers.calls import Endpoint, Failed, Invocation, Invoker, Replied, Reply
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.replies import failed, read_reply
from flowserver.invokers.web_requests import WebRequest

ENDPOINTS_MAX = 1_000
"""Endpoints that each side remembers, so as not to write or read them for every call; a further one makes all go."""

_encode = msgspec.msgpack.Encoder().encode


class DistantInvoker:
    """The engine's side: an `Invoker` whose calls the front makes.

    For a bug of the front's, `invoke`, `exchange` and `send` raise InternalServerError, too.
    """

    def __init__(self, link: Link, limits: Limits) -> None:
        self._link = link
        self._limits = limits
        self._written: dict[int, tuple[Endpoint, bytes]] = {}

    async def invoke(self, invocation: Invocation, endpoint: Endpoint) -> Replied | Failed:
        """Make the call and return its result. Raises nothing but CancelledError, which ends the call."""
        return read_reply(invocation, await self.exchange(invocation, endpoint), self._limits)

    async def exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        """Make the call; Failed only if no reply came. Raises nothing but CancelledError, which ends the call."""
        try:
            return await self._ask("exchange", invocation, self._write(endpoint))
        except UnicodeEncodeError:
            return _not_made(invocation.title, self._limits)

    async def send(self, request: WebRequest) -> Reply | Failed:
        """Make the request; Failed only if no reply came. Raises nothing but CancelledError, which ends it."""
        parts = (request.method, request.url, request.seconds, request.headers, request.body, request.message_id)
        try:
            return await self._ask("send", *parts)
        except UnicodeEncodeError:
            return _not_made(request.title, self._limits)

    async def close(self) -> None:
        """Nothing: the connections are the front's, and go with it."""

    async def _ask(self, name: str, *arguments: Any) -> Reply | Failed:
        try:
            told = await self._link.call(name, *arguments)
        except LinkLost:
            # The result of the call is not known, so none may be reported. This process ends with the front, and the
            # next start, or another node, makes the call again.
            await asyncio.Event().wait()
        return _told_reply(told)

    def _write(self, endpoint: Endpoint) -> bytes:
        """What the front needs of an endpoint; the same bytes for the same object."""
        known = self._written.get(id(endpoint))
        if known is not None:
            return known[1]
        if len(self._written) >= ENDPOINTS_MAX:
            self._written.clear()
        written = _encode((endpoint.url, endpoint.headers, endpoint.timeout_seconds))
        self._written[id(endpoint)] = endpoint, written  # which keeps the endpoint, or another could have its id
        return written


class Calling:
    """The front's side: makes the calls that the engine orders."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker
        self._endpoints: dict[bytes, Endpoint] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What the engine may call."""
        return {"exchange": self._exchange, "send": self._send}

    async def _exchange(self, invocation: dict[str, Any], endpoint: bytes) -> list[Any]:
        return _write_reply(await self._invoker.exchange(Invocation(**invocation), self._read(endpoint)))

    async def _send(self, *parts: Any) -> list[Any]:
        return _write_reply(await self._invoker.send(WebRequest(*parts)))

    def _read(self, written: bytes) -> Endpoint:
        """The same object for the same bytes, so that its route is found in the cache."""
        known = self._endpoints.get(written)
        if known is None:
            if len(self._endpoints) >= ENDPOINTS_MAX:
                self._endpoints.clear()
            known = self._endpoints[written] = Endpoint(*msgspec.msgpack.decode(written))
        return known


def _not_made(title: str, limits: Limits) -> Failed:
    cause = f"{title} was not called: the request's headers or body are not valid."
    return failed(ErrorName.INVALID_ARGUMENT, cause, limits)


def _write_reply(reply: Reply | Failed) -> list[Any]:
    if isinstance(reply, Failed):
        return [[reply.error, reply.cause, reply.is_own]]
    # Names may be of a class of their own, and values hold bytes that are no UTF-8, as surrogates.
    headers = [(str(name), value.encode("utf-8", "surrogateescape")) for name, value in reply.headers.items()]
    return [reply.status, headers, reply.body]


def _told_reply(told: list[Any]) -> Reply | Failed:
    if len(told) == 1:
        return Failed(*told[0])
    status, headers, body = told
    return Reply(
        status, CIMultiDict([(name, value.decode("utf-8", "surrogateescape")) for name, value in headers]), body
    )
