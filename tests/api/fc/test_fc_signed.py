"""A server with access keys: authentication for Function Compute's API."""

import base64
from collections.abc import AsyncIterator

import httpx
import pytest

from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of
from tests.api.fc.conftest import INVOKE, refused
from tests.api.fc.signing import signed_headers
from tests.invokers.wire_server import WireServer
from tests.support.access_key import TOKEN, create_database_with_key
from tests.support.clock import ManualClock

QUARTER_MS = 15 * 60 * 1000


@pytest.fixture
def app(sqlite_url: str, clock: ManualClock) -> Application:
    create_database_with_key(sqlite_url)
    return create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)


@pytest.fixture
async def client(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    async with app.router.lifespan_context(app), client_of(app) as opened:
        yield opened


async def test_signed_requests_and_bearer_tokens_are_accepted(
    client: httpx.AsyncClient, pay: WireServer, clock: ManualClock
) -> None:
    signed = signed_headers("POST", INVOKE, clock.now_ms(), {"x-fc-account-id": "1", "host": "anything"})
    assert (await client.post(INVOKE, headers=signed)).status_code == 200
    assert (await client.post(INVOKE, headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200


async def test_the_body_must_match_its_digest(client: httpx.AsyncClient, pay: WireServer, clock: ManualClock) -> None:
    """In the forms of Node's SDK, of HTTP and of Go's SDK; the digest is of `hello world`."""
    text = "5eb63bbbe01eeed093cb22bb8f5acdc3"
    for digest in (base64.b64encode(text.encode()).decode(), "XrY7u+Ae7tCTyyK7j1rNww==", text, text.upper()):
        signed = signed_headers("POST", INVOKE, clock.now_ms(), {"content-md5": digest})
        assert (await client.post(INVOKE, headers=signed, content=b"hello world")).status_code == 200
        before = len(pay.requests)
        for kind in ("Sync", "Async"):
            signed = signed_headers(
                "POST", INVOKE, clock.now_ms(), {"content-md5": digest, "x-fc-invocation-type": kind}
            )
            said = refused(await client.post(INVOKE, headers=signed, content=b"hello World"), 400, "InvalidArgument")
            assert said == "the header Content-MD5 does not match the body"
        assert len(pay.requests) == before
    signed = signed_headers("POST", INVOKE, clock.now_ms(), {"content-md5": "no digest"})
    refused(await client.post(INVOKE, headers=signed, content=b"hello world"), 400, "InvalidArgument")


async def test_the_query_is_not_signed(client: httpx.AsyncClient, pay: WireServer, clock: ManualClock) -> None:
    signed = signed_headers("POST", INVOKE, clock.now_ms())
    assert (await client.post(f"{INVOKE}?limit=5", headers=signed)).status_code == 200


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"secret": "other"}, 403, "SignatureNotMatch"),
        ({"access_key_id": "stranger"}, 403, "InvalidAccessKeyID"),
    ],
)
async def test_others_are_refused(
    client: httpx.AsyncClient, pay: WireServer, clock: ManualClock, change: dict[str, str], status: int, code: str
) -> None:
    signed = signed_headers("POST", INVOKE, clock.now_ms(), **change)
    refused(await client.post(INVOKE, headers=signed), status, code)
    assert pay.requests == []


async def test_a_request_is_valid_for_a_quarter_of_an_hour(
    client: httpx.AsyncClient, pay: WireServer, clock: ManualClock
) -> None:
    signed = signed_headers("POST", INVOKE, clock.now_ms() - QUARTER_MS - 1000)
    refused(await client.post(INVOKE, headers=signed), 403, "RequestTimeTooSkewed")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 400, "MissingRequiredHeader"),
        ({"Authorization": "Bearer wrong"}, 403, "AccessDenied"),
        ({"Authorization": "MNS testak:x"}, 400, "InvalidArgument"),
    ],
)
async def test_unsigned_requests(client: httpx.AsyncClient, headers: dict[str, str], status: int, code: str) -> None:
    refused(await client.post(INVOKE, headers=headers), status, code)


@pytest.mark.parametrize("query", ["", "?b=2&a=x%20y&a=1"])
@pytest.mark.parametrize("path", ["/2016-08-15/proxy/shop.prod/pay/any/path", "/2016-08-15/services/shop/triggers"])
async def test_paths_that_are_not_supported_are_named(
    client: httpx.AsyncClient, clock: ManualClock, path: str, query: str
) -> None:
    """Requests to HTTP triggers sign their query, too."""
    url = path + query
    signed = signed_headers("GET", url, clock.now_ms())
    assert path in refused(await client.get(url, headers=signed), 400, "PathNotSupported")
    if "/proxy/" in path:
        refused(await client.get(f"{path}?b=3", headers=signed), 403, "SignatureNotMatch")
