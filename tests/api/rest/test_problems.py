"""Errors of every kind are problem+json, reveal nothing internal, and leave the server working."""

import asyncio
import logging
from dataclasses import replace

import httpx
import pytest
from sqlalchemy.exc import OperationalError

from flowserver.server import Application
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS, WAIT, assert_problem


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/flow", "/v1/flows/", "/v1/flows/a/b", "/v2/flows", "/x", "/v1/flows/a%2Fb", "/v1//flows"],
)
async def test_unknown_paths(client: httpx.AsyncClient, path: str) -> None:
    problem = assert_problem(await client.get(path), 404, "NotFound")
    assert "diagnostics" not in problem


@pytest.mark.parametrize("slash", ["%2F", "%2f"])
async def test_a_name_with_an_encoded_slash_leads_to_no_other_resource(client: httpx.AsyncClient, slash: str) -> None:
    await client.put("/v1/flows/f", json={"definition": PASS})
    await client.put("/v1/functions/s/f", json={"url": "http://127.0.0.1/"})
    assert_problem(await client.get(f"/v1/flows/f{slash}executions"), 404, "NotFound")
    for name in (f"flows{slash}f", f"functions/s{slash}f"):
        assert_problem(await client.delete(f"/v1/{name}"), 404, "NotFound")
    assert (await client.get("/v1/flows/f")).is_success
    assert (await client.get("/v1/functions/s/f")).is_success


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/v1/flows", "GET, POST"),
        ("POST", "/v1/flows/a", "DELETE, GET, PATCH, PUT"),
        ("GET", "/v1/tasks/succeed", "POST"),
        ("PROPFIND", "/v1/functions/s/f", "DELETE, GET, PUT"),
        ("POST", "/v1/openapi.json", "GET, HEAD"),
        ("DELETE", "/healthz", "GET, HEAD"),
    ],
)
async def test_methods_that_a_path_does_not_accept(
    client: httpx.AsyncClient, method: str, path: str, allow: str
) -> None:
    response = await client.request(method, path)
    assert_problem(response, 405, "MethodNotAllowed")
    assert sorted(response.headers["allow"].split(", ")) == allow.split(", ")


async def test_server_errors_are_logged_and_not_shown(
    client: httpx.AsyncClient, app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    with app.state.engine.database.write() as connection:
        connection.exec_driver_sql("DROP TABLE functions")
    with caplog.at_level(logging.ERROR, "flowserver"):
        problem = assert_problem(await client.get("/v1/functions"), 500, "InternalServerError")
    assert problem["detail"] == "The server failed to handle this request; its log says why."
    [record] = caplog.records
    assert problem["requestId"] in record.getMessage()
    assert "no such table" in caplog.text
    assert (await client.get("/v1/flows")).status_code == 200


async def test_a_full_server_asks_to_retry_later(app: Application) -> None:
    app.state.limits = replace(app.state.limits, running_executions_max=0)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await client.put("/v1/flows/order", json={"definition": WAIT})
        response = await client.post("/v1/flows/order/executions")
        assert_problem(response, 429, "ResourceThrottled")
        assert response.headers["retry-after"] == "1"


async def test_every_request_has_its_own_id(client: httpx.AsyncClient) -> None:
    responses = await asyncio.gather(*(client.get("/v1/flows/none") for _ in range(5)))
    assert len({assert_problem(each, 404, "FlowNotExists")["requestId"] for each in responses}) == 5


async def test_a_client_that_disconnects_in_its_body_causes_no_server_error(
    app: Application, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    messages = iter([{"type": "http.request", "body": PASS.encode(), "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> dict:
        return next(messages)

    async def send(_: dict) -> None:
        pass

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/definitions/validate",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"text/yaml")],
    }
    await app(scope, receive, send)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_database_that_is_down_is_a_503_that_may_be_retried(
    client: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("SELECT", None, Exception("the server closed the connection"))

    monkeypatch.setattr(app.state.engine.database, "run_read", away)
    response = await client.get("/v1/functions")
    assert_problem(response, 503, "ServiceUnavailable")
    assert response.headers["retry-after"] == "1"


async def test_a_leaving_server_closes_connections_with_its_answers(
    client: httpx.AsyncClient, app: Application
) -> None:
    assert "connection" not in (await client.get("/v1/functions")).headers
    await app.state.engine.leave()
    response = await client.get("/v1/functions")
    assert (response.status_code, response.headers["connection"]) == (200, "close")
