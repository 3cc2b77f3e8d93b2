"""The rates of requests that the cloud documents, in the profile `cloud`: buckets by action and access key."""

import httpx
import pytest

from flowserver.api.rpc.request_rates import RequestRates
from flowserver.base.errors import ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.server import create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of
from tests.support.clock import ManualClock


def taken(rates: RequestRates, action: str, key_id: str = "") -> int:
    """How many requests are let through one after the other."""
    count = 0
    try:
        while True:
            rates.require(action, key_id)
            count += 1
    except ResourceThrottled as error:
        assert action in error.message
    return count


@pytest.mark.parametrize(
    ("action", "burst", "per_second"),
    [
        ("StartExecution", 100, 100),
        ("DescribeExecution", 50, 5),
        ("GetExecutionHistory", 50, 5),
        ("ListFlows", 10, 2),
        ("ReportTaskSucceeded", 10, 2),
    ],
)
def test_a_bucket_is_full_at_first_and_fills_steadily(action: str, burst: int, per_second: int) -> None:
    clock = ManualClock()
    rates = RequestRates(Limits.of("cloud"), clock)
    assert taken(rates, action) == burst
    clock.advance(seconds=1)
    assert taken(rates, action) == per_second
    clock.advance(seconds=0.5)
    assert taken(rates, action) == per_second // 2
    clock.advance(seconds=3_600)
    assert taken(rates, action) == burst


def test_actions_and_keys_have_buckets_of_their_own() -> None:
    rates = RequestRates(Limits.of("cloud"), ManualClock())
    assert taken(rates, "ListFlows", "a") == taken(rates, "ListFlows", "b") == taken(rates, "DescribeFlow", "a") == 10
    assert taken(rates, "ListFlows", "a") == 0


def test_the_usual_profile_has_no_rates() -> None:
    rates = RequestRates(Limits(), ManualClock())
    for _ in range(10_000):
        rates.require("ListFlows", "a")


async def test_a_refusal_says_when_to_come_back(sqlite_url: str) -> None:
    clock = ManualClock()
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, limits="cloud"), clock)

    async def list_flows() -> httpx.Response:
        return await client.post("/", data={"Action": "ListFlows", "Version": "2019-03-15"})

    async with app.router.lifespan_context(app), client_of(app) as client:
        assert [(await list_flows()).status_code for _ in range(11)] == [200] * 10 + [429]
        refused = await list_flows()
        assert refused.json()["Code"] == "ResourceThrottled"
        assert int(refused.headers["Retry-After"]) >= 1
        assert int(refused.headers["x-acs-retry-after"]) > 0
        clock.advance(seconds=1)
        assert (await list_flows()).status_code == 200
