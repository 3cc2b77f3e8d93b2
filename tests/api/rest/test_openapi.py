"""The OpenAPI document is complete and matches the models, and its page needs no internet."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from flowserver.api.rest import openapi
from flowserver.api.rest.problems import ANYWHERE
from flowserver.api.rest.router import ROUTERS
from flowserver.base.errors import FlowServerError
from flowserver.server import Application

DOCUMENT = openapi.openapi_document(ROUTERS)
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def parts(value: Any) -> Iterator[dict]:
    """Every object inside a JSON value."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from parts(item)


@pytest.mark.parametrize("path", ["/v1/openapi.json", "/openapi.json"])
async def test_it_is_served(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.headers["content-type"] == "application/json"
    assert response.json() == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert DOCUMENT["info"]["title"] == "flowserver"


def test_its_operations() -> None:
    assert {operation["operationId"] for operation in OPERATIONS.values()} == {
        *("list_flows", "create_flow", "get_flow", "put_flow", "update_flow", "delete_flow"),
        *("validate_definition", "describe_language", "draw_definition", "test_definition", "list_rules"),
        *(
            "start_execution",
            "list_executions",
            "list_all_executions",
            "get_execution",
            "stop_execution",
            "restart_execution",
            "redrive_execution",
            "redrive_executions",
            "list_steps",
            "list_iterations",
            "list_events",
            "stream_events",
        ),
        *("list_tasks", "report_task_succeeded", "report_task_failed"),
        *("list_functions", "get_function", "put_function", "delete_function"),
        *("list_secrets", "get_secret", "put_secret", "delete_secret"),
        *("list_function_health", "get_function_health"),
        *("list_all_schedules", "list_schedules", "create_schedule", "get_schedule", "put_schedule", "update_schedule"),
        *("delete_schedule", "pause_schedule", "resume_schedule", "trigger_schedule", "backfill_schedule"),
        *("publish_flow_version", "list_flow_versions", "get_flow_version", "delete_flow_version"),
        *("list_flow_aliases", "create_flow_alias", "get_flow_alias", "put_flow_alias", "update_flow_alias"),
        "delete_flow_alias",
        *("list_queues", "get_queue", "peek_messages", "send_message", "purge_queue"),
        *("list_topics", "get_topic", "publish_message"),
        *("get_overview", "get_permissions", "list_nodes", "list_keys", "list_audit", "sign_in"),
        *("list_parked_invocations", "get_invocation", "restart_invocation", "stop_invocation"),
    }


def test_every_reference_resolves_and_every_component_is_used() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    used = {part["$ref"].removeprefix("#/components/schemas/") for part in parts(DOCUMENT) if "$ref" in part}
    assert used == set(schemas)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_is_described(operation: dict) -> None:
    assert operation["summary"]
    assert operation["description"]
    assert operation["security"] == [{"bearer": []}]
    assert operation["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}
    for parameter in operation.get("parameters", ()):
        assert parameter["description"]
    for response in operation["responses"].values():
        assert response["description"]


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_body_has_an_example(operation: dict) -> None:
    replies = [each for status, each in operation["responses"].items() if status not in ("204", "304")]
    for media in (*replies, *([operation["requestBody"]] if "requestBody" in operation else [])):
        for content in media["content"].values():
            assert {"example", "examples"} & set(content) or _schema(content).get("examples")


def _schema(content: dict) -> dict:
    return DOCUMENT["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]


@pytest.mark.parametrize("model", openapi.MODELS, ids=lambda model: model.__name__)
def test_examples_are_valid(model: type[BaseModel]) -> None:
    for example in DOCUMENT["components"]["schemas"][model.__name__]["examples"]:
        model.model_validate(example)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_names_its_possible_errors(operation: dict) -> None:
    codes = {
        (int(status), code)
        for status, response in operation["responses"].items()
        if int(status) >= 400
        for code in response["content"]["application/problem+json"]["examples"]
    }
    anywhere: set[type[FlowServerError]] = set(ANYWHERE)
    assert codes >= {(each.status, each.code) for each in anywhere}
    assert "422" not in operation["responses"]


PARAMETERS = [
    (label, parameter["name"], value)
    for label, operation in OPERATIONS.items()
    for parameter in operation.get("parameters", ())
    if parameter["in"] == "query"
    for value in [parameter["schema"].get("default"), *parameter["schema"].get("examples", ())]
    if value is not None
]


@pytest.mark.parametrize(("label", "name", "value"), PARAMETERS)
async def test_documented_values_of_parameters_are_accepted(
    client: httpx.AsyncClient, label: str, name: str, value: Any
) -> None:
    method, path = label.split()
    path = path.replace("{version}", "1")
    text = str(value).lower() if isinstance(value, bool) else value
    answer = await client.request(method, re.sub(r"\{\w+\}", "none", path), params={name: text})
    assert f"{name}:" not in answer.json().get("detail", "")


async def test_the_page_loads_nothing_from_other_sites(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(addresses) == 3
    for address in addresses:
        assert address.startswith("/docs/assets/")
        assert (await client.get(address)).status_code == 200
    assert "'/v1/openapi.json'" in page.text
    assert "://" not in page.text


@pytest.mark.parametrize("path", ["/docs/assets/", "/docs/assets/none.js", "/docs/assets/%2e%2e/core.py"])
async def test_only_the_pages_own_files_are_served(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


async def test_behind_a_path_prefix(app: Application) -> None:
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, root_path="/flows")
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            page = (await client.get("/docs")).text
            served = (await client.get("/openapi.json")).json()
    assert served["servers"][0]["url"] == "/flows"
    assert '"/flows/docs/assets/swagger-ui.css"' in page
    assert "'/flows/v1/openapi.json'" in page
