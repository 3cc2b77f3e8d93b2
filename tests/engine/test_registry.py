"""Where a function's calls go: the qualified registration first, changes at once."""

import pytest

from flowserver.engine.registry import FunctionRegistry
from flowserver.invokers.invocation import Endpoint
from flowserver.machine.messages import Failure
from flowserver.store.database import Database
from flowserver.store.functions import delete_function, put_function
from tests.store.rows import function_row


@pytest.fixture
def registry(database: Database) -> FunctionRegistry:
    with database.write() as connection:
        for service, function in (
            ("shop", "pay"),
            ("shop.prod", "pay"),
            ("shop.2", "pay"),
            ("only.prod", "f"),
            ("", "f"),
        ):
            put_function(connection, function_row(service, function, url=f"http://{service or 'none'}/{function}"))
    return FunctionRegistry(database)


@pytest.mark.parametrize(
    ("service", "qualifier", "function", "url"),
    [
        ("shop", "", "pay", "http://shop/pay"),
        ("shop", "prod", "pay", "http://shop.prod/pay"),
        ("shop", "2", "pay", "http://shop.2/pay"),
        ("shop", "unknown", "pay", "http://shop/pay"),
        ("shop", "LATEST", "pay", "http://shop/pay"),
        ("only", "prod", "f", "http://only.prod/f"),
        ("", "", "f", "http://none/f"),
    ],
)
async def test_the_qualified_one_comes_first(
    registry: FunctionRegistry, service: str, qualifier: str, function: str, url: str
) -> None:
    endpoint = await registry.find(service, qualifier, function)
    assert isinstance(endpoint, Endpoint)
    assert (endpoint.url, endpoint.headers, endpoint.timeout_seconds) == (url, {"x-key": "ü"}, 60)


@pytest.mark.parametrize(
    ("service", "qualifier", "function", "error"),
    [
        ("unknown", "", "pay", "FC.ServiceNotFound"),
        ("sho", "", "pay", "FC.ServiceNotFound"),
        ("Shop", "", "pay", "FC.ServiceNotFound"),
        ("unknown", "prod", "pay", "FC.ServiceNotFound"),
        ("shop", "", "unknown", "FC.FunctionNotFound"),
        ("only", "", "f", "FC.FunctionNotFound"),
        ("only", "dev", "f", "FC.FunctionNotFound"),
        ("", "", "pay", "FC.FunctionNotFound"),
    ],
)
async def test_what_is_not_there_has_its_own_names(
    registry: FunctionRegistry, service: str, qualifier: str, function: str, error: str
) -> None:
    found = await registry.find(service, qualifier, function)
    assert isinstance(found, Failure)
    assert found.error == error


async def test_a_change_is_seen_once_it_is_told(registry: FunctionRegistry, database: Database) -> None:
    assert isinstance(await registry.find("shop", "", "pay"), Endpoint)
    assert isinstance(await registry.find("shop", "", "new"), Failure)
    with database.write() as connection:
        delete_function(connection, "shop", "pay")
        put_function(connection, function_row("shop", "new"))
    registry.forget()
    assert isinstance(await registry.find("shop", "", "pay"), Failure)
    assert isinstance(await registry.find("shop", "", "new"), Endpoint)
