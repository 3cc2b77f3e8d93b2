"""Replies: resources as exact JSON, and how the OpenAPI document shows them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from starlette.responses import JSONResponse

from flowserver.api.rest.models.base import Resource
from flowserver.base.json_values import dump_json_bytes
from flowserver.operations.operations import Operations
from flowserver.operations.paging import Page

T = TypeVar("T")


class ExactJson(JSONResponse):
    """JSON as the whole server writes it: integers keep their digits, text stays UTF-8."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return content if isinstance(content, bytes) else dump_json_bytes(content)


def answer(resource: Resource, status: int = 200, headers: Mapping[str, str] | None = None) -> ExactJson:
    """A reply that shows the resource."""
    return ExactJson(resource.model_dump(), status, headers)


async def page_answer(operations: Operations, page: Page[T], name: str, show: Callable[[T], Resource]) -> ExactJson:
    """A reply that shows a page: under `name` its items, each as `show` makes it, and `nextToken`.

    It is made beside the event loop, item by item: no other thread runs while one document is written.
    """
    return ExactJson(await operations.encoding.run(partial(_written, page, name, show)))


def _written(page: Page[T], name: str, show: Callable[[T], Resource]) -> bytes:
    items = b",".join(dump_json_bytes(show(item).model_dump()) for item in page.items)
    return b'{"%s":[%s],"nextToken":%s}' % (name.encode(), items, dump_json_bytes(page.next_token))
