"""Replies: resources as exact JSON, and how the OpenAPI document shows them."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from flowserver.api.rest.models.base import Resource
from flowserver.base.json_values import dump_json


class ExactJson(JSONResponse):
    """JSON as the whole server writes it: integers keep their digits, text stays UTF-8."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return dump_json(content).encode()


def answer(resource: Resource, status: int = 200, headers: Mapping[str, str] | None = None) -> ExactJson:
    """A reply that shows the resource."""
    return ExactJson(resource.model_dump(), status, headers)
