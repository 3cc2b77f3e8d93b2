"""Authentication for queues: with access keys by signature or bearer token, without keys for local programs only."""

import base64
import hmac
from collections.abc import AsyncIterator
from email.utils import formatdate

import httpx
import pytest

from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of
from tests.api.mns.conftest import Mns, document
from tests.support.access_key import ACCESS_KEY_ID, SECRET, TOKEN, create_database_with_key
from tests.support.clock import ManualClock

QUARTER_MS = 15 * 60 * 1000
LIST = ("GET", "/queues")


def signed(
    method: str, resource: str, now_ms: int, *, key: str = ACCESS_KEY_ID, secret: str = SECRET, **more: str
) -> dict[str, str]:
    """Headers by the published rules; not by the code under test."""
    date = formatdate(now_ms / 1000, usegmt=True)
    own = {"x-mns-version": "2015-06-06", **{name.replace("_", "-"): value for name, value in more.items()}}
    lines = "".join(f"{name}:{own[name]}\n" for name in sorted(own))
    text = f"{method}\n\n\n{date}\n{lines}{resource}"
    signature = base64.b64encode(hmac.digest(secret.encode(), text.encode(), "sha1")).decode()
    return {"date": date, **own, "authorization": f"MNS {key}:{signature}"}


class TestWithKeys:
    @pytest.fixture
    def app(self, sqlite_url: str, clock: ManualClock) -> Application:
        create_database_with_key(sqlite_url)
        return create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)

    @pytest.fixture
    async def client(self, app: Application) -> AsyncIterator[httpx.AsyncClient]:
        async with app.router.lifespan_context(app), client_of(app) as opened:
            yield opened

    async def test_signed_requests_and_bearer_tokens_are_accepted(self, mns: Mns, clock: ManualClock) -> None:
        for resource in ("/queues", "/queues?x=1&y==="):
            headers = signed("GET", resource, clock.now_ms(), x_mns_prefix="a")
            assert (await mns.send("GET", resource, "", headers)).status == 200
        await mns.ask(200, *LIST, Authorization=f"Bearer {TOKEN}")
        headers = signed("GET", "/?accountmeta=true", clock.now_ms())
        assert (await mns.send("GET", "/?accountmeta=true", "", headers)).status == 200

    async def test_others_are_refused(self, mns: Mns, clock: ManualClock) -> None:
        now = clock.now_ms()
        await mns.refused(403, "SignatureDoesNotMatch", *LIST, **signed(*LIST, now, secret="other"))
        await mns.refused(403, "InvalidAccessKeyId", *LIST, **signed(*LIST, now, key="stranger"))
        await mns.refused(403, "SignatureDoesNotMatch", "GET", "/queues?x=1", **signed(*LIST, now))
        await mns.refused(408, "TimeExpired", *LIST, **signed(*LIST, now - QUARTER_MS - 1_000))
        await mns.refused(408, "TimeExpired", *LIST, **signed(*LIST, now + QUARTER_MS + 1_000))
        await mns.refused(403, "AccessDenied", *LIST, Authorization="Bearer wrong")
        await mns.refused(400, "MissingAuthorizationHeader", *LIST)
        await mns.refused(400, "InvalidAuthorizationHeader", *LIST, Authorization="MNS nothing")
        await mns.refused(400, "MissingDateHeader", *LIST, Authorization="MNS a:b")
        await mns.refused(400, "InvalidDateHeader", *LIST, Authorization="MNS a:b", Date="now")

    async def test_a_body_that_was_changed_is_refused(self, mns: Mns) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-MD5": "aGVsbG8="}
        await mns.refused(400, "InvalidDegist", "PUT", "/queues/q", document("Queue"), **headers)


class TestWithoutKeys:
    async def test_local_programs_are_accepted_with_any_signature(self, mns: Mns) -> None:
        await mns.ask(200, *LIST)
        await mns.ask(200, *LIST, Authorization="MNS any:thing")
        await mns.ask(200, *LIST, Host="1234.mns.cn-hangzhou.aliyuncs.com")

    async def test_pages_of_other_sites_are_refused(self, mns: Mns) -> None:
        await mns.refused(403, "AccessDenied", *LIST, Host="evil.example")
        await mns.refused(403, "AccessDenied", *LIST, Host="mns.evil.aliyuncs.com.example")
        await mns.refused(403, "AccessDenied", *LIST, Origin="https://evil.example")
        await mns.refused(403, "AccessDenied", *LIST, Sec_Fetch_Site="cross-site")
