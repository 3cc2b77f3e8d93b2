"""Replies: resources as exact JSON, and how the OpenAPI document shows them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from flowserver.api.large_bodies import page_in_pieces, send_pieces
from flowserver.api.rest.models.shared_types import Resource
from flowserver.base.json_values import Json, dump_json_bytes
from flowserver.operations.operations import Operations
from flowserver.operations.pages import Page

T = TypeVar("T")


class ExactJson(JSONResponse):
    """JSON as the whole server writes it: integers keep their digits, text stays UTF-8."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return dump_json_bytes(content)


class PageOfPieces(Response):
    """A page of JSON as pieces."""

    media_type = "application/json"

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self._pieces = pieces

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it."""
        await send_pieces(send, 200, [(b"content-type", b"application/json")], self._pieces)


def answer(resource: Resource, status: int = 200, headers: Mapping[str, str] | None = None) -> ExactJson:
    """A reply that shows the resource."""
    return ExactJson(resource.model_dump(), status, headers)


async def page_answer(
    operations: Operations, page: Page[T], name: str, show: Callable[[T], Resource], **more: Json
) -> Response:
    """A reply that shows a page: under `name` its items, each as `show` makes it, `more`, and `nextToken`.

    It is made beside the event loop, item by item.
    """
    shown: Iterator[Json] = (show(item).model_dump() for item in page.items)
    told = {name: shown, **more, "nextToken": page.next_token}
    return PageOfPieces(await operations.encoding.run(partial(page_in_pieces, told)))
