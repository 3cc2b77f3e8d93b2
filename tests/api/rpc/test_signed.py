"""A server with access keys: accepted and refused requests; no signed request is accepted twice."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlencode

import httpx
import pytest
from sqlalchemy import func, select

from flowserver.api.rpc.signature import TIME_WINDOW_MS
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import disable_access_key
from flowserver.store.schema.tables import nonces
from flowserver.store.sql.database import Database
from tests.api.rpc.conftest import PASS, Rpc, fault, running_rpc, success
from tests.api.rpc.signing import Signer
from tests.support.access_key import ACCESS_KEY_ID, TOKEN, create_database_with_key
from tests.support.clock import ManualClock

LIST = {"Action": "ListFlows"}
AWKWARD = "~*+/&=中 %41%2B\n'\""


@pytest.fixture
def keyed_app(sqlite_url: str, clock: ManualClock) -> Application:
    create_database_with_key(sqlite_url)
    return create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)


@pytest.fixture
async def keyed(keyed_app: Application) -> AsyncIterator[Rpc]:
    """The RPC API of a server with one key."""
    async with running_rpc(keyed_app) as rpc:
        yield rpc


@pytest.fixture
def signer(clock: ManualClock) -> Signer:
    return Signer(clock)


def creation(text: str = PASS) -> dict[str, str]:
    return {"Action": "CreateFlow", "Name": "f", "Definition": text, "Type": "FDL", "Description": AWKWARD}


@pytest.mark.parametrize("position", ["query", "form", "both"])
async def test_v1_in_every_place_for_parameters(keyed: Rpc, signer: Signer, position: str) -> None:
    signed = signer.v1("POST", creation())
    names = [*signed]
    in_query = {"query": names, "form": [], "both": names[:5]}[position]
    query = {name: signed[name] for name in in_query}
    form = {name: signed[name] for name in names if name not in in_query}
    body = success(await keyed.http.post("/", params=query, data=form))
    assert body["Description"] == AWKWARD


async def test_v1_over_get(keyed: Rpc, signer: Signer) -> None:
    success(await keyed.http.get("/", params=signer.v1("GET", LIST)))
    fault(await keyed.http.get("/", params=signer.v1("POST", LIST)), 403, "SignatureNotMatch")


async def test_v3_over_form_and_query(keyed: Rpc, signer: Signer) -> None:
    form = {name: value for name, value in creation().items() if name != "Action"}
    created = success(await keyed.http.send(signer.v3("CreateFlow", form=form)))
    assert created["Description"] == AWKWARD
    query = {"NextToken": "a +/&=中", "Limit": "10"}
    assert [flow["Name"] for flow in success(await keyed.http.send(signer.v3("ListFlows", query=query)))["Flows"]] == [
        "f"
    ]


@pytest.mark.parametrize("host", ["flows.example:8080", "http://127.0.0.1:18802", "cn-hangzhou.fnf.aliyuncs.com"])
async def test_v3_over_any_host(keyed: Rpc, signer: Signer, host: str) -> None:
    """With keys any client is accepted. Some clients put their endpoint's scheme into Host, and sign it."""
    success(await keyed.http.send(signer.v3("ListFlows", host=host)))


async def test_a_bearer_token(keyed: Rpc) -> None:
    for scheme in ("Bearer", "bearer"):
        success(await keyed.http.get("/", params=LIST, headers={"Authorization": f"{scheme} {TOKEN}"}))
    for wrong in (f"Bearer {TOKEN}x", "Bearer ", "Bearer \xff"):
        headers = [(b"Authorization", wrong.encode("latin-1"))]
        fault(await keyed.http.get("/", params=LIST, headers=headers), 403, "AccessDenied")


async def test_without_a_signature(keyed: Rpc) -> None:
    fault(await keyed.http.get("/", params=LIST), 400, "MissingRequiredParams")
    fault(await keyed.http.get("/", params={"Action": "NoSuch"}), 400, "ActionNotSupported")
    basic = {"Authorization": "Basic dTpw"}
    fault(await keyed.http.get("/", params=LIST, headers=basic), 400, "MissingRequiredParams")


@pytest.mark.parametrize("missing", ["Signature", "SignatureNonce", "Timestamp", "AccessKeyId"])
async def test_an_incomplete_signature(keyed: Rpc, signer: Signer, missing: str) -> None:
    signed = signer.v1("POST", LIST)
    del signed[missing]
    fault(await keyed.http.post("/", data=signed), 400, "MissingRequiredParams")


@pytest.mark.parametrize(
    "change",
    [{"Definition": PASS + "\n"}, {"Action": "DeleteFlow"}, {"Extra": "1"}, {"SignatureNonce": "n"}, {"Name": "g"}],
)
async def test_a_changed_parameter(keyed: Rpc, signer: Signer, change: dict[str, str]) -> None:
    signed = {**signer.v1("POST", creation()), **change}
    fault(await keyed.http.post("/", data=signed), 403, "SignatureNotMatch")
    assert success(await keyed.http.post("/", data=signer.v1("POST", LIST)))["Flows"] == []


async def test_the_action_of_a_v1_request_must_be_signed(keyed: Rpc, signer: Signer) -> None:
    signed = signer.v1("POST", {"Name": "f"})
    response = await keyed.http.post("/", data=signed, headers={"x-acs-action": "DeleteFlow"})
    fault(response, 400, "MissingRequiredParams")


async def test_a_changed_v3_request(keyed: Rpc, signer: Signer) -> None:
    request = signer.v3("CreateFlow", form=without_action(creation()))
    body = request.content.replace(b"Name=f", b"Name=g")
    changed = httpx.Request("POST", request.url, headers=request.headers, content=body)
    fault(await keyed.http.send(changed), 403, "SignatureNotMatch")
    request.headers["x-acs-action"] = "DeleteFlow"
    fault(await keyed.http.send(request), 403, "SignatureNotMatch")
    added = signer.v3("ListFlows")
    added = httpx.Request("GET", f"{added.url}Limit=1", headers=added.headers)
    fault(await keyed.http.send(added), 403, "SignatureNotMatch")


@pytest.mark.parametrize("is_signed", [True, False])
async def test_a_type_that_hides_the_parameters_of_a_v3_body(keyed: Rpc, signer: Signer, is_signed: bool) -> None:
    """Clients need not send a type, nor sign that of a form or of an empty body."""
    success(await keyed.http.send(signer.v3("CreateFlow", form=without_action(creation()))))
    query, inputs = {"FlowName": "f", "ExecutionName": "e"}, {"Input": '{"amount": 5}'}
    if is_signed:
        request = signer.v3("StartExecution", query=query, form=inputs)
    else:
        request = signer.v3("StartExecution", query=query, content=urlencode(inputs).encode())
    request.headers["content-type"] = "application/json"
    fault(await keyed.http.send(request), 403, "SignatureNotMatch")
    for name, types in {"e": {}, "e2": {"content-type": "application/x-www-form-urlencoded"}}.items():
        sent = signer.v3("StartExecution", query=query | {"ExecutionName": name}, content=urlencode(inputs).encode())
        sent.headers.update(types)
        assert success(await keyed.http.send(sent))["Input"] == inputs["Input"]
    bare = signer.v3("ListFlows")
    bare.headers["content-type"] = "application/json"
    success(await keyed.http.send(bare))


def without_action(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if name != "Action"}


async def test_an_unknown_key_and_a_wrong_secret(keyed: Rpc, clock: ManualClock) -> None:
    stranger = Signer(clock, "stranger", "secret")
    fault(await keyed.http.post("/", data=stranger.v1("POST", LIST)), 403, "InvalidAccessKeyID")
    fault(await keyed.http.send(stranger.v3("ListFlows")), 403, "InvalidAccessKeyID")
    liar = Signer(clock, ACCESS_KEY_ID, "wrong")
    fault(await keyed.http.post("/", data=liar.v1("POST", LIST)), 403, "SignatureNotMatch")
    fault(await keyed.http.send(liar.v3("ListFlows")), 403, "SignatureNotMatch")


async def test_a_disabled_key_is_refused(keyed_app: Application, signer: Signer, sqlite_url: str) -> None:
    """Disabling the last key does not open the server."""
    database = Database(sqlite_url)
    with database.write() as connection:
        disable_access_key(connection, ACCESS_KEY_ID, 1)
    database.close()
    async with running_rpc(keyed_app) as rpc:
        fault(await rpc.http.post("/", data=signer.v1("POST", LIST)), 403, "InvalidAccessKeyID")
        fault(await rpc.http.send(signer.v3("ListFlows")), 403, "InvalidAccessKeyID")
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        fault(await rpc.http.get("/", params=LIST, headers=bearer), 403, "AccessDenied")
        fault(await rpc.http.get("/", params=LIST), 400, "MissingRequiredParams")


@pytest.mark.parametrize(("seconds", "accepted"), [(900, True), (901, False), (-900, True), (-901, False)])
async def test_a_request_of_another_time(
    keyed: Rpc, signer: Signer, clock: ManualClock, seconds: int, accepted: bool
) -> None:
    v1, v3 = signer.v1("POST", LIST), signer.v3("ListFlows")
    clock.advance(seconds=seconds)
    for response in (await keyed.http.post("/", data=v1), await keyed.http.send(v3)):
        if accepted:
            success(response)
        else:
            fault(response, 403, "RequestTimeTooSkewed")


@pytest.mark.parametrize("timestamp", ["", "now", "2026-01-01", "9" * 50])
async def test_an_invalid_time(keyed: Rpc, signer: Signer, timestamp: str) -> None:
    code = "InvalidArgument" if timestamp else "MissingRequiredParams"
    fault(await keyed.http.post("/", data=signer.v1("POST", LIST, Timestamp=timestamp)), 400, code)


async def test_a_nonce_is_used_once(keyed: Rpc, signer: Signer) -> None:
    signed, other = signer.v1("POST", LIST), signer.v3("ListFlows")
    success(await keyed.http.post("/", data=signed))
    success(await keyed.http.send(other))
    fault(await keyed.http.post("/", data=signed), 400, "SignatureNonceUsed")
    fault(await keyed.http.send(other), 400, "SignatureNonceUsed")
    again = signer.v1("POST", creation(), SignatureNonce=signed["SignatureNonce"])
    fault(await keyed.http.post("/", data=again), 400, "SignatureNonceUsed")


async def test_one_of_several_concurrent_copies_is_served(keyed: Rpc, signer: Signer) -> None:
    signed = signer.v1("POST", creation())
    responses = await asyncio.gather(*(keyed.http.post("/", data=signed) for _ in range(5)))
    assert sorted(response.status_code for response in responses) == [200, 400, 400, 400, 400]


async def test_a_busy_server_refuses_signed_reads(keyed: Rpc, signer: Signer, keyed_app: Application) -> None:
    """The nonce that is stored for each is no change that the caller asked for."""
    keyed_app.state.engine.slow_reads._threads._pending_max = 0
    fault(await keyed.http.post("/", data=signer.v1("POST", LIST)), 429, "ResourceThrottled")


async def test_a_nonce_is_used_up_only_by_its_owner(keyed: Rpc, signer: Signer, clock: ManualClock) -> None:
    """Otherwise a caller who guesses nonces could lock others out."""
    liar = Signer(clock, ACCESS_KEY_ID, "wrong")
    fault(await keyed.http.post("/", data=liar.v1("POST", LIST, SignatureNonce="n")), 403, "SignatureNotMatch")
    success(await keyed.http.post("/", data=signer.v1("POST", LIST, SignatureNonce="n")))


async def test_a_nonce_stays_used_after_a_restart(sqlite_url: str, clock: ManualClock, signer: Signer) -> None:
    create_database_with_key(sqlite_url)
    signed = signer.v1("POST", LIST)
    for lives in range(2):
        app = create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)
        async with running_rpc(app) as rpc:
            response = await rpc.http.post("/", data=signed)
            if lives == 0:
                success(response)
            else:
                fault(response, 400, "SignatureNonceUsed")


async def test_a_nonce_is_kept_while_its_request_may_be_valid(
    keyed: Rpc, signer: Signer, sqlite_url: str, clock: ManualClock
) -> None:
    success(await keyed.http.post("/", data=signer.v1("POST", LIST)))
    database = Database(sqlite_url)
    with database.read() as connection:
        expires_at = connection.execute(select(func.min(nonces.c.expires_at))).scalar_one()
    database.close()
    assert expires_at > clock.now_ms() + 2 * TIME_WINDOW_MS


async def test_a_nonce_that_is_too_long(keyed: Rpc, signer: Signer) -> None:
    response = await keyed.http.post("/", data=signer.v1("POST", LIST, SignatureNonce="n" * 129))
    fault(response, 400, "InvalidArgument")


async def test_a_refused_request_may_be_retried(keyed: Rpc, signer: Signer) -> None:
    """Every attempt is signed anew; a refused request has changed nothing."""
    for _ in range(2):
        given = {"Action": "DescribeFlow", "Name": "none"}
        fault(await keyed.http.post("/", data=signer.v1("POST", given)), 404, "FlowNotExists")
