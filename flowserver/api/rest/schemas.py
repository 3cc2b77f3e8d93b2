"""JSON Schemas of definitions and flow tests, for editors. They are public: editors send no tokens, and a schema holds
nothing of what the server holds.
"""

from functools import cached_property

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.editing.flow_schema import flow_schema
from flowserver.editing.flow_test_schema import flow_test_schema

FLOW_PATH = "/v1/schemas/flow.json"
FLOW_TEST_PATH = "/v1/schemas/flowtest.json"
_TYPE = "application/schema+json"


class Schemas:
    """Answers with the schemas under the limits of the server, each made once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def install(self, app: FastAPI) -> None:
        """Add the routes to the application."""
        app.add_route(FLOW_PATH, self.show_flow_schema, methods=["GET"], include_in_schema=False)
        app.add_route(FLOW_TEST_PATH, self.show_flow_test_schema, methods=["GET"], include_in_schema=False)

    @cached_property
    def _of_flows(self) -> str:
        return dump_json(flow_schema(self._limits))

    @cached_property
    def _of_flow_tests(self) -> str:
        return dump_json(flow_test_schema(self._limits))

    async def show_flow_schema(self, _request: Request) -> Response:
        """The schema of definitions."""
        return Response(self._of_flows, media_type=_TYPE)

    async def show_flow_test_schema(self, _request: Request) -> Response:
        """The schema of flow test files."""
        return Response(self._of_flow_tests, media_type=_TYPE)
