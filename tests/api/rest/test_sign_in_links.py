"""`POST /v1/sign-ins`: the code of a link is good for one key, once, and for nothing else."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.fernet import Fernet

from flowserver.base.clock import format_instant
from flowserver.operations.sign_in_links import REFUSED, make_sign_in_link
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import list_access_keys
from flowserver.store.sign_in_links import insert_link
from flowserver.store.sql.database import Database
from tests.api.conftest import client_of
from tests.api.rest.conftest import assert_problem
from tests.api.rpc.signing import Signer
from tests.support.clock import ManualClock

PATH = "/v1/sign-ins"


def bearer(code: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {code}"}


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    opened = Database(sqlite_url)
    yield opened
    opened.close()


def add_link(database: Database, clock: ManualClock, **key: Any) -> str:
    """The code of a new link."""
    new = make_sign_in_link(clock.now_ms(), 900, **key)
    with database.write() as connection:
        insert_link(connection, new.link, clock.now_ms())
    return new.code


@pytest.fixture
def app(sqlite_url: str, clock: ManualClock) -> Application:
    return create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)


async def test_the_first_key_closes_the_server_at_once(
    app: Application, client: httpx.AsyncClient, database: Database, clock: ManualClock
) -> None:
    code = add_link(database, clock, is_first=True)
    assert (await client.get("/v1/permissions")).json()["open"]
    made = await client.post(PATH, headers=bearer(code))
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    key = made.json()
    assert (key["role"], key["flows"], key["label"], key["expiresTime"]) == ("admin", "", "console", None)
    assert_problem(await client.get("/v1/permissions"), 401, "AccessDenied")
    client.headers.update(bearer(key["bearerToken"]))
    allowed = (await client.get("/v1/permissions")).json()
    assert (allowed["key"], allowed["open"], allowed["role"]) == ("console", False, "admin")
    signer = Signer(clock, key["id"], key["secret"])
    listed = await client.post("/", data=signer.v1("POST", {"Action": "ListFlows"}), headers={"Authorization": ""})
    assert listed.status_code == 200, listed.text
    [record] = (await client.get("/v1/audit?operation=keys.create")).json()["records"]
    assert (record["operation"], record["object"], record["result"]) == ("keys.create", f"keys/{key['id']}", "ok")
    assert (record["key"], record["caller"], record["api"], record["address"]) == (
        *(key["id"], "console"),
        *("REST", "127.0.0.1"),
    )
    assert record["requestId"] == made.headers["x-request-id"]


async def test_a_link_gives_what_its_maker_said(
    token: str, client: httpx.AsyncClient, database: Database, clock: ManualClock
) -> None:
    end = clock.now_ms() + 3_600_000
    code = add_link(database, clock, label="ann", role="viewer", flows="order-", key_expires_at=end)
    key = (await client.post(PATH, headers=bearer(code))).json()
    assert (key["label"], key["role"], key["flows"]) == ("ann", "viewer", "order-")
    shown = (await client.get("/v1/permissions", headers=bearer(key["bearerToken"]))).json()
    assert (shown["key"], shown["role"], shown["flows"]) == ("ann", "viewer", "order-")
    assert key["expiresTime"] == format_instant(end)


async def test_unknown_used_and_old_links_have_the_same_answer(
    token: str, client: httpx.AsyncClient, database: Database, clock: ManualClock
) -> None:
    used, old, first = add_link(database, clock), add_link(database, clock), add_link(database, clock, is_first=True)
    assert (await client.post(PATH, headers=bearer(used))).status_code == 201
    clock.advance(seconds=900)
    answers = []
    for code in (used, old, first, "flc_unknown", f"{old}x", token):
        answer = await client.post(PATH, headers=bearer(code))
        problem = assert_problem(answer, 401, "AccessDenied")
        answers.append({**problem, "requestId": ""} | {"challenge": answer.headers["www-authenticate"]})
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["detail"] == REFUSED
    with database.read() as connection:
        assert len(list_access_keys(connection)) == 2


async def test_a_code_is_good_for_nothing_else_and_no_get_uses_it_up(
    token: str, client: httpx.AsyncClient, database: Database, clock: ManualClock
) -> None:
    code = add_link(database, clock)
    page = {"Accept": "text/html,application/xhtml+xml"}
    for path in (f"/sign-in?code={code}", f"/sign-in#{code}"):
        assert (await client.get(path, headers=page)).status_code == 200
    assert_problem(await client.get(PATH, headers=bearer(code)), 405, "MethodNotAllowed")
    assert_problem(await client.get("/v1/flows", headers=bearer(code)), 401, "AccessDenied")
    assert_problem(await client.post(PATH, params={"code": code}, json={"code": code}), 401, "AccessDenied")
    assert (await client.post(PATH, headers=bearer(code))).status_code == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "203.0.113.7"},
        {"Forwarded": "for=127.0.0.1"},
        {"Host": "flows.example"},
        {"Origin": "https://elsewhere.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_of_an_open_server_no_link_is_used_from_elsewhere(
    client: httpx.AsyncClient, database: Database, clock: ManualClock, headers: dict[str, str]
) -> None:
    code = add_link(database, clock, is_first=True)
    assert_problem(await client.post(PATH, headers=bearer(code) | headers), 403, "AccessDenied")
    assert (await client.get("/v1/permissions")).json()["open"]
    assert (await client.post(PATH, headers=bearer(code))).status_code == 201


async def test_a_link_lets_in_where_all_keys_are_lost(
    sqlite_url: str, database: Database, clock: ManualClock, token: str
) -> None:
    with database.write() as connection:
        connection.exec_driver_sql("DELETE FROM access_keys")
    code = add_link(database, clock)
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert_problem(await client.get("/v1/flows", headers=bearer(token)), 403, "AccessDenied")
        key = (await client.post(PATH, headers=bearer(code))).json()
        assert (await client.get("/v1/flows", headers=bearer(key["bearerToken"]))).status_code == 200


async def test_attempts_are_in_the_audit_and_codes_in_no_line_of_the_log(
    token: str, client: httpx.AsyncClient, database: Database, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    code = add_link(database, clock)
    with caplog.at_level(logging.DEBUG):
        for sent in ("flc_guess", code, code):
            await client.post(PATH, headers=bearer(sent))
        async with asyncio.timeout(60):
            while sum(each["count"] for each in await _records(client, token, "authenticate")) < 2:
                pass  # it is written within a second
    assert [each["result"] for each in await _records(client, token, "authenticate")] == ["AccessDenied"]
    assert [each["result"] for each in await _records(client, token, "keys.create")] == ["ok"]
    records = (await client.get("/v1/audit", headers=bearer(token))).json()["records"]
    for secret in (code, code[4:24], "flc_guess"):
        assert secret not in caplog.text
        assert secret not in str(records)


async def _records(client: httpx.AsyncClient, token: str, operation: str) -> list[dict[str, Any]]:
    answer = await client.get("/v1/audit", params={"operation": operation}, headers=bearer(token))
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


async def test_the_secret_is_encrypted_as_those_of_commands_are(
    sqlite_url: str, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    code = add_link(database, clock, is_first=True)
    file = tmp_path / "secrets.key"
    file.write_text(Fernet.generate_key().decode())
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, secrets_key_file=file), clock)
    async with app.router.lifespan_context(app), client_of(app) as client:
        key = (await client.post(PATH, headers=bearer(code))).json()
        with database.read() as connection:
            [stored] = list_access_keys(connection)
        assert key["secret"] not in stored.secret
        signed = Signer(clock, key["id"], key["secret"]).v1("POST", {"Action": "ListFlows"})
        assert (await client.post("/", data=signed)).status_code == 200
