"""Finds a function's registration: the qualified one first, and changes at once."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Connection

from flowserver.base.limits import Limits
from flowserver.engine.functions.endpoint_lookup import EndpointLookup
from flowserver.engine.reads.lookup_reader import Reader
from flowserver.invokers.calls import Endpoint
from flowserver.machine.messages import Failure
from flowserver.store.functions import delete_function, find_function, put_function
from flowserver.store.sql.database import Database
from tests.engine.held_threads import Gate
from tests.store.rows import function_row


@pytest.fixture
async def reader(database: Database) -> AsyncIterator[Reader]:
    reader = Reader(database, Limits())
    yield reader
    await reader.close()


@pytest.fixture
def endpoints(database: Database, reader: Reader) -> EndpointLookup:
    with database.write() as connection:
        for service, function in (
            ("shop", "pay"),
            ("shop.prod", "pay"),
            ("shop.2", "pay"),
            ("only.prod", "f"),
            ("", "f"),
        ):
            put_function(connection, function_row(service, function, url=f"http://{service or 'none'}/{function}"))
    return EndpointLookup(reader)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The function that each database read asked for."""
    seen: list[str] = []

    def find(connection: Connection, service: str, function: str) -> Any:
        seen.append(function)
        return find_function(connection, service, function)

    monkeypatch.setattr("flowserver.engine.functions.endpoint_lookup.find_function", find)
    return seen


@pytest.mark.parametrize(
    ("service", "qualifier", "function", "url_or_error"),
    [
        ("shop", "", "pay", "http://shop/pay"),
        ("shop", "prod", "pay", "http://shop.prod/pay"),
        ("shop", "2", "pay", "http://shop.2/pay"),
        ("shop", "unknown", "pay", "http://shop/pay"),
        ("shop", "LATEST", "pay", "http://shop/pay"),
        ("only", "prod", "f", "http://only.prod/f"),
        ("", "", "f", "http://none/f"),
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
async def test_a_name_finds_the_qualified_registration_first_or_fails_with_the_missing_part(
    endpoints: EndpointLookup, service: str, qualifier: str, function: str, url_or_error: str
) -> None:
    found = await endpoints.find(service, qualifier, function)
    assert (found.url if isinstance(found, Endpoint) else found.error) == url_or_error
    assert isinstance(found, Failure) or (found.headers, found.timeout_seconds) == ({"x-key": "ü"}, 60)


async def test_an_announced_change_is_visible(endpoints: EndpointLookup, database: Database) -> None:
    assert isinstance(await endpoints.find("shop", "", "pay"), Endpoint)
    assert isinstance(await endpoints.find("shop", "", "new"), Failure)
    with database.write() as connection:
        delete_function(connection, "shop", "pay")
        put_function(connection, function_row("shop", "new"))
    endpoints.forget()
    assert isinstance(await endpoints.find("shop", "", "pay"), Failure)
    assert isinstance(await endpoints.find("shop", "", "new"), Endpoint)


async def test_concurrent_requests_share_one_read(endpoints: EndpointLookup, looks: list[str]) -> None:
    found = await asyncio.gather(*(endpoints.find("shop", "", "pay") for _ in range(9)))
    assert looks == ["pay"]
    assert all(endpoint is found[0] for endpoint in found)


async def test_an_unchanged_registration_is_the_same_object(
    reader: Reader, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.engine.functions.endpoint_lookup.CACHED_SECONDS", 0)
    endpoints = EndpointLookup(reader)
    before = await endpoints.find("shop", "", "pay")
    assert endpoints.cached("shop", "", "pay") is None
    assert await endpoints.find("shop", "", "pay") is before
    assert looks == ["pay", "pay"]


async def test_a_read_from_before_a_change_is_not_cached_after_it(endpoints: EndpointLookup, reader: Reader) -> None:
    gate = Gate()
    blocked = asyncio.create_task(reader.ask(gate))
    await gate.reached.wait()
    looking = asyncio.create_task(endpoints.find("shop", "", "pay"))
    await asyncio.sleep(0)
    endpoints.forget()
    gate.open()
    assert await blocked == "through"
    assert isinstance(await looking, Endpoint)
    assert endpoints.cached("shop", "", "pay") is None


async def test_a_failed_read_without_remaining_callers_is_not_logged(
    endpoints: EndpointLookup, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    monkeypatch.setattr("flowserver.engine.functions.endpoint_lookup.find_function", fail)
    gate = Gate()
    blocked = asyncio.create_task(reader.ask(gate))
    await gate.reached.wait()
    asking = asyncio.gather(*(endpoints.find("shop", "", "pay") for _ in range(2)))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    del asking  # whose traceback keeps the read's task
    gate.open()
    await blocked
    assert await reader.ask(lambda _: "the look has been answered") == "the look has been answered"
    await asyncio.sleep(0)  # the read's own task ends
    gc.collect()
    assert told == []
