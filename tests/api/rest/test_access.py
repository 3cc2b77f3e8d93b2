"""Authentication for REST: every route requires it, except those on one short list."""

import logging
import re

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import delete
from starlette.applications import Starlette

from flowserver.api.rest.router import ROUTERS
from flowserver.operations import access
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import KEYS_SEEN, disable_access_key, insert_access_key, list_access_keys
from flowserver.store.schema.tables import access_keys, secrets
from flowserver.store.sql.database import Database
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS, assert_problem

SCHEMAS = {"/v1/schemas/flow.json", "/v1/schemas/flowtest.json"}

PUBLIC = {"/healthz", "/readyz", "/metrics", "/docs", "/docs/assets", "/openapi.json", "/v1/openapi.json", *SCHEMAS}
"""Routes without authentication: they reveal only counts."""

RPC = "/"
"""The RPC route checks signatures itself."""

WRONG = [
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer nothing"},
    {"Authorization": "Bearer null"},
    {"Authorization": "Basic {token}"},
    {"Authorization": "{token}"},
    {"Authorization": "Bearer {token}x"},
    {"Authorization": "Bearer x{token}"},
    {"Authorization": "Bearer {token},{token}"},
    {"Authorization": b"Bearer \xff\xfe"},
    {"X-Authorization": "Bearer {token}"},
    {"Cookie": "token={token}"},
]


def routes_of(app: Starlette) -> list[tuple[str, str]]:
    """Method and path of every route, with names in the place of parameters."""
    found = []
    for route in iter_route_contexts(app.routes):
        path = re.sub(r"\{.*?\}", "order", str(route.path))
        found += [(method, path) for method in sorted(route.methods or {"GET"})]
    return found


async def test_no_route_answers_without_authentication(app: Application, token: str, client: httpx.AsyncClient) -> None:
    """The walk covers the whole application, so that a new route cannot be missed."""
    routes = routes_of(await app.rest())
    assert {path for _, path in routes} >= PUBLIC | {RPC, "/v1/flows/order/executions/order/events/stream"}
    for method, path in routes:
        response = await client.request(method, path)
        if path in PUBLIC:
            assert response.status_code < 300 or path == "/docs/assets"
        elif path == RPC:
            assert response.status_code == 400
        else:
            assert_problem(response, 401, "AccessDenied")


@pytest.mark.parametrize("headers", WRONG)
async def test_a_token_must_be_right(token: str, client: httpx.AsyncClient, headers: dict) -> None:
    sent = {name: _with_token(value, token) for name, value in headers.items()}
    for method, path in (
        ("GET", "/v1/flows"),
        ("POST", "/v1/flows"),
        ("GET", "/v1/flows/a/executions/b/events/stream"),
    ):
        response = await client.request(method, path, headers=sent)
        assert_problem(response, 401, "AccessDenied")
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert token not in response.text


def url_of(database: Database) -> str:
    return database.url.render_as_string(hide_password=False)


def _with_token(value: str | bytes, token: str) -> str | bytes:
    return value.replace("{token}", token) if isinstance(value, str) else value


async def test_the_challenge_names_the_reason(token: str, client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/flows")).headers["www-authenticate"] == "Bearer"
    response = await client.get("/v1/flows", headers={"Authorization": "Bearer x"})
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_valid_token_is_accepted(token: str, client: httpx.AsyncClient, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {token}", "Host": "flows.example", "Origin": "https://elsewhere.example"}
    assert (await client.get("/v1/flows", headers=headers)).status_code == 200


async def test_authentication_comes_before_validation(token: str, client: httpx.AsyncClient) -> None:
    for method, path in (
        ("GET", "/v1/flows?limit=x"),
        ("GET", "/v1/flows/9"),
        ("POST", "/v1/flows"),
        ("POST", "/v1/tasks/fail"),
        ("GET", "/v1/flows/healthz"),
        ("GET", "/v1/flows/docs"),
        ("GET", "/v1/flows/openapi.json"),
    ):
        response = await client.request(method, path, content=b"{", headers={"Content-Type": "application/json"})
        assert_problem(response, 401, "AccessDenied")


async def test_a_disabled_key_is_refused(token: str, app: Application, sqlite_url: str) -> None:
    database = Database(sqlite_url)
    with database.write() as connection:
        [key] = list_access_keys(connection)
        disable_access_key(connection, key.access_key_id, 1)
    database.close()
    async with app.router.lifespan_context(app), client_of(app) as client:
        for headers in ({"Authorization": f"Bearer {token}"}, {}):
            assert_problem(await client.get("/v1/flows", headers=headers), 401, "AccessDenied")


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("remembers", [False, True])
async def test_no_loss_of_keys_opens_the_server(
    database: Database, monkeypatch: pytest.MonkeyPatch, is_wide: bool, remembers: bool
) -> None:
    """The process refuses requests without a key, even if the database loses its record of keys; so does listening
    beyond loopback.
    """
    monkeypatch.setattr(access, "REMEMBER_SECONDS", 0)
    app = create_app(Settings(database_url=url_of(database), drain_seconds=0))
    app.state.is_wide = is_wide
    first, second = access.make_access_key("first", 0), access.make_access_key("second", 0)
    async with app.router.lifespan_context(app), client_of(app) as client:
        if not is_wide:
            with database.write() as connection:
                insert_access_key(connection, first.key)
            assert_problem(await client.get("/v1/flows"), 401, "AccessDenied")
        with database.write() as connection:
            connection.execute(delete(access_keys))
            if not remembers:
                connection.execute(delete(secrets).where(secrets.c.name == KEYS_SEEN))
        for headers in ({}, {"Authorization": f"Bearer {first.token}"}):
            problem = assert_problem(await client.get("/v1/flows", headers=headers), 403, "AccessDenied")
            assert "flowserver keys create" in problem["detail"]
        assert (await client.get("/", params={"Action": "ListFlows"})).json()["Code"] == "AccessDenied"
        with database.write() as connection:
            insert_access_key(connection, second.key)
        assert_problem(await client.get("/v1/flows"), 401, "AccessDenied")
        opened = await client.get("/v1/flows", headers={"Authorization": f"Bearer {second.token}"})
        assert opened.status_code == 200


class TestOpenServer:
    async def test_needs_no_token(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/v1/flows")).status_code == 200
        response = await client.get("/v1/flows", headers={"Authorization": "Bearer whatever"})
        assert response.status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [
            {"Host": "flows.example"},
            {"Host": "10.0.0.1:8080"},
            {"Origin": "https://elsewhere.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ],
    )
    async def test_refuses_other_hosts(
        self, app: Application, client: httpx.AsyncClient, headers: dict[str, str]
    ) -> None:
        for router in ROUTERS:
            for method, path in routes_of_router(router):
                response = await client.request(method, path, headers=headers)
                assert_problem(response, 403, "AccessDenied")
        response = await client.post(
            "/v1/flows?name=x", content=PASS, headers={"Content-Type": "text/plain", **headers}
        )
        assert_problem(response, 403, "AccessDenied")
        assert (await client.get("/v1/flows")).json()["flows"] == []

    async def test_is_closed_by_the_first_key_and_reports_it(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(access, "REMEMBER_SECONDS", 0)
        app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
        async with app.router.lifespan_context(app), client_of(app) as client:
            with caplog.at_level(logging.INFO, "flowserver.operations.access"):
                assert (await client.get("/v1/flows")).status_code == 200
                database = Database(sqlite_url)
                with database.write() as connection:
                    insert_access_key(connection, access.make_access_key("tests", 0).key)
                database.close()
                for _ in range(2):
                    assert_problem(await client.get("/v1/flows"), 401, "AccessDenied")
        said = [record.getMessage() for record in caplog.records if record.name == access.__name__]
        assert said == ["there is an access key now: callers without one are refused"]

    async def test_answers_to_its_configured_names(self, sqlite_url: str) -> None:
        app = create_app(Settings(database_url=sqlite_url, allowed_hosts=["flows.example"], drain_seconds=0))
        async with app.router.lifespan_context(app), client_of(app) as client:
            response = await client.get("/v1/flows", headers={"Host": "flows.example:8080"})
            assert response.status_code == 200


def routes_of_router(router: object) -> list[tuple[str, str]]:
    return [
        (method, re.sub(r"\{.*?\}", "order", route.path)) for route in router.routes for method in sorted(route.methods)
    ]
