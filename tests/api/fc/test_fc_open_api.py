"""The API of 2021-04-06: the same operations, the qualifier in the query, signed as the OpenAPI clients sign."""

from collections.abc import AsyncIterator

import httpx
import pytest

from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of
from tests.api.fc.conftest import refused
from tests.api.rpc.signing import Signer
from tests.invokers.wire_server import WireServer
from tests.support.access_key import create_database_with_key
from tests.support.clock import ManualClock

FUNCTION = "/2021-04-06/services/shop/functions/pay"
INVOKE = f"{FUNCTION}/invocations"


@pytest.fixture
def app(sqlite_url: str, clock: ManualClock) -> Application:
    create_database_with_key(sqlite_url)
    return create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)


@pytest.fixture
async def client(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    async with app.router.lifespan_context(app), client_of(app) as opened:
        yield opened


@pytest.fixture
def signer(clock: ManualClock) -> Signer:
    return Signer(clock)


async def test_the_qualifier_is_in_the_query(client: httpx.AsyncClient, pay: WireServer, signer: Signer) -> None:
    request = signer.v3("InvokeFunction", path=INVOKE, query={"qualifier": "prod"}, content=b'{"a": 1}')
    response = await client.send(request)
    assert response.status_code == 200, response.text
    assert response.headers["x-fc-invocation-service-version"] == "prod"
    request = signer.v3("InvokeFunction", path=INVOKE.replace("shop", "shop.prod"), content=b"")
    refused(await client.send(request), 400, "InvalidArgument")


async def test_the_parameters_of_a_request_must_be_signed(
    client: httpx.AsyncClient, pay: WireServer, signer: Signer
) -> None:
    """By a client that signs other headers than the service asks for, as the one for Python does."""
    for further in ({"accept": "*/*"}, {"x_fc_log_type": "Tail"}):
        request = signer.v3("InvokeFunction", path=INVOKE, content=b"{}", **further)
        request.headers["x-fc-invocation-type"] = "Async"
        assert "x-fc-invocation-type" in refused(await client.send(request), 403, "SignatureNotMatch")
    request = signer.v3("InvokeFunction", path=INVOKE, content=b"{}", x_fc_invocation_type="Async")
    assert (await client.send(request)).status_code == 202
    request = signer.v3("InvokeFunction", path=INVOKE, content=b"{}", query={"qualifier": "prod"})
    request.url = request.url.copy_with(query=b"qualifier=test")
    refused(await client.send(request), 403, "SignatureNotMatch")


async def test_clients_that_sign_no_headers_of_functions(
    client: httpx.AsyncClient, pay: WireServer, signer: Signer
) -> None:
    """Those for Node, Java and Go sign `host`, `content-type` and `x-acs-*` only; the service takes that."""
    request = signer.v3("InvokeFunction", path=INVOKE, content=b"{}", content_type="application/json")
    request.headers.update({"x-fc-invocation-type": "Async", "x-fc-stateful-async-invocation-id": "mine"})
    answer = await client.send(request)
    assert (answer.status_code, answer.headers["x-fc-stateful-async-invocation-id"]) == (202, "mine")


async def test_a_changed_body_is_detected_and_reaches_no_function(
    client: httpx.AsyncClient, pay: WireServer, signer: Signer
) -> None:
    signed = signer.v3("InvokeFunction", path=INVOKE, content=b'{"a": 1}')
    headers = {name: value for name, value in signed.headers.items() if name != "content-length"}
    refused(await client.post(INVOKE, headers=headers, content=b'{"a": 2}'), 403, "SignatureNotMatch")
    assert pay.requests == []


async def test_a_request_is_accepted_once(client: httpx.AsyncClient, pay: WireServer, signer: Signer) -> None:
    request = signer.v3("InvokeFunction", path=INVOKE, content=b"{}")
    assert (await client.send(request)).status_code == 200
    refused(await client.send(request), 400, "SignatureNonceUsed")
    assert len(pay.requests) == 1


@pytest.mark.parametrize(
    ("key", "code"),
    [({"secret": "other"}, "SignatureNotMatch"), ({"access_key_id": "stranger"}, "InvalidAccessKeyID")],
)
async def test_unauthorized_requests(
    client: httpx.AsyncClient, pay: WireServer, clock: ManualClock, key: dict[str, str], code: str
) -> None:
    refused(await client.send(Signer(clock, **key).v3("InvokeFunction", path=INVOKE, content=b"{}")), 403, code)
    assert pay.requests == []


async def test_other_paths_are_not_supported(client: httpx.AsyncClient, signer: Signer) -> None:
    for path in (f"{FUNCTION}/triggers", "/2021-04-06/custom-domains"):
        refused(await client.send(signer.v3("Any", path=path)), 400, "PathNotSupported")
