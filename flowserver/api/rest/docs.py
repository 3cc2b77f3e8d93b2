"""The OpenAPI document and the page to try it on. Both are public: they hold nothing of what the server holds.

The page's scripts come from this server, so it works without the internet.
"""

from collections.abc import Sequence
from functools import cached_property

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from flowserver.api.rest.openapi import SERVER, openapi_document
from flowserver.api.security_headers import POLICY, policy_with_inline_scripts
from flowserver.base.json_values import JsonObject, dump_json_bytes

OPENAPI_PATH = "/v1/openapi.json"
USUAL_PATH = "/openapi.json"
"""Where generators of clients and other tools look first."""
PAGE_PATH = "/docs"
ASSETS_PATH = "/docs/assets"


class Docs:
    """Answers with the document and the page."""

    def __init__(self, routers: Sequence[APIRouter]) -> None:
        self._routers = routers

    def install(self, app: FastAPI) -> None:
        """Add the routes to the application."""
        for path in (OPENAPI_PATH, USUAL_PATH):
            app.add_route(path, self.show_document, methods=["GET"], include_in_schema=False)
        app.add_route(PAGE_PATH, self.show_page, methods=["GET"], include_in_schema=False)
        app.mount(ASSETS_PATH, StaticFiles(packages=[("fastapi_offline", "static")]), name="docs-assets")

    @cached_property
    def _document(self) -> JsonObject:
        return openapi_document(self._routers)

    async def show_document(self, request: Request) -> Response:
        """The OpenAPI document; its server is the path under which this one is reached."""
        server = {**SERVER, "url": request.scope.get("root_path") or "/"}
        return Response(dump_json_bytes({**self._document, "servers": [server]}), media_type="application/json")

    async def show_page(self, request: Request) -> Response:
        """Swagger UI."""
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            title="flowserver",
            openapi_url=root + OPENAPI_PATH,
            swagger_js_url=f"{root}{ASSETS_PATH}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{ASSETS_PATH}/swagger-ui.css",
            swagger_favicon_url=f"{root}{ASSETS_PATH}/favicon.png",
        )
        page.headers[POLICY] = policy_with_inline_scripts(bytes(page.body).decode())
        return page
