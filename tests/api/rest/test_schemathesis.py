"""The server behaves as its OpenAPI document says for generated requests, which are the same every time."""

from collections.abc import Iterator

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from flowserver.api.rest.openapi import openapi_document
from flowserver.api.rest.router import ROUTERS
from tests.support.server import ServerProcess

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES_MAX = 8

schema = schemathesis.openapi.from_dict(openapi_document(ROUTERS))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the flow, the execution and the function that the document's examples name."""
    file = tmp_path_factory.mktemp("fuzzed") / "flows.db"
    with ServerProcess(f"sqlite:///{file}") as server:
        put_examples(server.url)
        yield server.url
        assert "ERROR" not in server.log


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """A client that ignores proxies."""
    with requests.Session() as opened:
        opened.trust_env = False
        yield opened


def put_examples(url: str) -> None:
    components = openapi_document(ROUTERS)["components"]["schemas"]
    with httpx.Client(base_url=url, trust_env=False) as client:
        client.put("/v1/functions/shop/charge", json={"url": "http://127.0.0.1:1/charge"})
        client.put("/v1/flows/order", json=components["PutFlow"]["examples"][0]).raise_for_status()
        schedule = components["PutSchedule"]["examples"][0]
        client.put("/v1/flows/order/schedules/nightly", json=schedule).raise_for_status()
        client.post("/v1/flows/order/executions?wait=60", json=components["StartExecution"]["examples"][0])


def same_requests_every_time(test):
    """Hypothesis settings: bounded, deterministic, and without a database of earlier runs."""
    unchecked = list(HealthCheck)
    return settings(
        max_examples=EXAMPLES_MAX, derandomize=True, database=None, deadline=None, suppress_health_check=unchecked
    )(test)


@schema.exclude(method="DELETE").parametrize()
@same_requests_every_time
def test_requests_of_all_kinds(case: Case, url: str, session: requests.Session) -> None:
    case.call_and_validate(base_url=url, checks=CHECKS, session=session)


@schema.include(method="DELETE").parametrize()
@same_requests_every_time
def test_deletions_come_last(case: Case, url: str, session: requests.Session) -> None:
    case.call_and_validate(base_url=url, checks=CHECKS, session=session)
