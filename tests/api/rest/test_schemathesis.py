"""The server behaves as its OpenAPI document says for generated requests, which are the same every time.

Generating the requests of an operation takes longer than answering them. `parametrize` of schemathesis generates all of
them at collection, which every test process does; here the test of an operation generates its own.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
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

LONG = 1000


def quick_to_generate(document: Any, *, is_parameter: bool = False) -> Any:
    """The document without the patterns of long strings, as one of 8,192 characters takes a minute to generate; and
    with parameters of LONG characters at most, as two longer ones in a URL are more than a request may have.
    """
    if isinstance(document, list):
        return [quick_to_generate(each, is_parameter=is_parameter) for each in document]
    if not isinstance(document, dict):
        return document
    shown = {
        key: quick_to_generate(value, is_parameter=is_parameter or key == "parameters")
        for key, value in document.items()
    }
    if shown.get("maxLength", 0) > LONG:
        shown.pop("pattern", None)
        if is_parameter:
            shown["maxLength"] = LONG
    return shown


schema = schemathesis.openapi.from_dict(quick_to_generate(openapi_document(ROUTERS)))


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


def check_operation(label: str, url: str, session: requests.Session) -> None:
    """Make the generated requests of one operation: a bounded number, without a database of earlier runs."""

    def check(case: Case) -> None:
        is_stream = case.path.endswith("/stream")  # whose schema is that of the text, not of each event
        checks = [each for each in CHECKS if not (is_stream and each is response_schema_conformance)]
        case.call_and_validate(base_url=url, checks=checks, session=session)

    bounds = settings(
        max_examples=EXAMPLES_MAX,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    tests = get_all_tests(schema=schema.include(name=label), test_func=check, settings=bounds, given_kwargs={})
    [(_, check_all)] = [test.ok() for test in tests]
    check_all()


def labels(method: str, *, others: bool = False) -> list[str]:
    """The operations of a method, or all but those."""
    found = [result.ok().label for result in schema.get_all_operations()]
    return [label for label in found if label.startswith(method) != others]


@pytest.mark.parametrize("label", labels("DELETE", others=True))
def test_requests_of_all_kinds(label: str, url: str, session: requests.Session) -> None:
    check_operation(label, url, session)


@pytest.mark.parametrize("label", labels("DELETE"))
def test_deletions_come_last(label: str, url: str, session: requests.Session) -> None:
    check_operation(label, url, session)
