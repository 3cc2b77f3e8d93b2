"""A parsed request of a Function Compute client. Checks only that the request can be read."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from flowserver.api.asgi_receive import disconnected, read_body
from flowserver.api.content_digest import is_digest_of
from flowserver.api.rpc.signature import check_body
from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import InvalidJson, JsonObject, load_json_object
from flowserver.concurrency.waiting import ends_first

T = TypeVar("T")

PARAMETERS_MAX = 50
"""Parameters of one query; real ones have at most eight."""


@dataclass(frozen=True)
class FcRequest:
    """A request without its body, which is read only after the caller is checked; header names in lower case."""

    method: str
    path: str
    """Decoded, without the query."""
    query_string: bytes
    headers: Mapping[str, str]
    request_id: str
    receive: Receive
    is_body_signed: bool = False
    """Whether the body must have the hash that the headers name."""

    @staticmethod
    def of(scope: Scope, receive: Receive) -> "FcRequest":
        """The request of an ASGI scope; `scope["state"]` holds its `request_id`."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = str(scope["state"]["request_id"])
        return FcRequest(scope["method"], scope["path"], scope["query_string"], headers, request_id, receive)

    @cached_property
    def query(self) -> dict[str, str]:
        """The parameters; the last of one name wins. Raises InvalidArgument."""
        return dict(self.pairs)

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The parameters in their order. Raises InvalidArgument."""
        try:
            pairs = parse_qsl(
                self.query_string.decode(), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
            )
        except ValueError:  # which is also what text that is not UTF-8 raises
            raise InvalidArgument(f"the query must be at most {PARAMETERS_MAX} percent-encoded parameters") from None
        if any("\0" in text for pair in pairs for text in pair):
            raise InvalidArgument("the query must not hold NUL characters")  # PostgreSQL cannot store them
        return pairs

    def number(self, name: str) -> int | None:
        """The query's whole number of this name, or None; raises InvalidArgument."""
        text = self.query.get(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise InvalidArgument(f"{name} must be a whole number")
        return int(text)

    async def body(self) -> bytes:
        """The whole body; raises ClientDisconnect, InvalidArgument if it does not match its Content-MD5, and
        SignatureNotMatch if it is not the signed body.
        """
        body = await read_body(self.receive)
        digest = self.headers.get("content-md5")
        if digest and not is_digest_of(digest, body):
            raise InvalidArgument("the header Content-MD5 does not match the body")
        if self.is_body_signed:
            check_body(body, self.headers)
        return body

    async def unless_abandoned(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns; call it after `body`. Work whose client closes its connection is cancelled.

        Raises ClientDisconnect then, once the work has ended.
        """
        working = asyncio.create_task(work)
        try:
            if await ends_first(working, disconnected(self.receive)):
                return working.result()
        finally:
            if working.cancel():
                await asyncio.wait((working,))
        raise ClientDisconnect

    async def json(self) -> JsonObject:
        """The body as a JSON object; raises InvalidArgument."""
        try:
            return load_json_object(await self.body())
        except InvalidJson as error:
            raise InvalidArgument(f"the body must be a JSON object: {error}") from None
