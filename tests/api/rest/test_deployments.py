"""Deployments of flows: entity tags that prevent overwriting, and warnings."""

import asyncio

import httpx
import pytest

from tests.api.rest.conftest import PASS, WAIT, assert_problem

FLOW = "/v1/flows/order"
CALLS = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
  - type: task
    name: ship
    resourceArn: acs:fnf:::flow/ship
"""


async def deploy(
    client: httpx.AsyncClient, definition: str, headers: dict[str, str] | None = None, query: str = ""
) -> httpx.Response:
    return await client.put(FLOW + query, json={"definition": definition}, headers=headers)


async def test_a_flow_has_an_entity_tag_that_changes_with_it(client: httpx.AsyncClient) -> None:
    created = await deploy(client, PASS)
    first = created.headers["etag"]
    assert (await client.get(FLOW)).headers["etag"] == first
    assert (await deploy(client, PASS)).headers["etag"] == first
    assert (await deploy(client, WAIT)).headers["etag"] != first
    assert (await deploy(client, PASS)).headers["etag"] == first
    assert (await client.patch(FLOW, json={"description": "sells"})).headers["etag"] != first
    assert (await client.patch(FLOW, json={"description": "", "retentionDays": 3})).headers["etag"] != first


async def test_a_flow_that_has_not_changed_is_not_sent_again(client: httpx.AsyncClient) -> None:
    etag = (await deploy(client, PASS)).headers["etag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        unchanged = await client.get(FLOW, headers={"If-None-Match": known})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", etag)
    assert (await client.get(FLOW, headers={"If-None-Match": '"other"'})).json()["definition"] == PASS


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_a_flow_is_changed_only_as_it_was_read(client: httpx.AsyncClient, method: str) -> None:
    etag = (await deploy(client, PASS)).headers["etag"]
    newer = (await deploy(client, WAIT)).headers["etag"]
    body = None if method == "DELETE" else {"definition": PASS}
    for stale in (etag, f"W/{newer}", '"a", "b"'):
        refused = await client.request(method, FLOW, json=body, headers={"If-Match": stale})
        assert_problem(refused, 412, "PreconditionFailed")
        assert (await client.get(FLOW)).json()["definition"] == WAIT
    done = await client.request(method, FLOW, json=body, headers={"If-Match": f'"a", {newer}'})
    assert done.status_code in (200, 204)


async def test_one_of_two_concurrent_deployments_is_refused(client: httpx.AsyncClient) -> None:
    etag = (await deploy(client, PASS)).headers["etag"]
    definitions = [f"{WAIT}# {number}\n" for number in range(2)]
    replies = await asyncio.gather(*(deploy(client, each, {"If-Match": etag}) for each in definitions))
    assert sorted(reply.status_code for reply in replies) == [200, 412]
    [kept] = [text for text, reply in zip(definitions, replies, strict=True) if reply.status_code == 200]
    assert (await client.get(FLOW)).json()["definition"] == kept


async def test_a_flow_may_be_required_to_be_new_or_to_exist(client: httpx.AsyncClient) -> None:
    for etag in ("*", '"a"'):
        assert_problem(await deploy(client, PASS, {"If-Match": etag}), 412, "PreconditionFailed")
    assert (await deploy(client, PASS, {"If-None-Match": "*"})).status_code == 201
    assert_problem(await deploy(client, WAIT, {"If-None-Match": "*"}), 412, "PreconditionFailed")
    assert (await deploy(client, WAIT, {"If-Match": "*"})).status_code == 200


@pytest.mark.parametrize("headers", [{"If-Match": "abc"}, {"If-Match": '"a" "b"'}, {"If-None-Match": '"a"'}])
async def test_unsupported_conditions_are_refused(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    assert_problem(await deploy(client, PASS, headers), 400, "InvalidArgument")
    assert (await client.get(FLOW)).status_code == 404


async def test_a_deployment_returns_its_warnings(client: httpx.AsyncClient) -> None:
    created = (await deploy(client, CALLS)).json()
    assert [(each["id"], each["line"], each["target"]) for each in created["warnings"]] == [
        ("unknown-function", 4, {"kind": "function", "name": "shop/charge"}),
        ("unknown-flow", 7, {"kind": "flow", "name": "ship"}),
    ]
    await client.put("/v1/functions/shop/charge", json={"url": "http://127.0.0.1:9/charge"})
    await client.put("/v1/flows/ship", json={"definition": PASS})
    assert (await deploy(client, CALLS)).json()["warnings"] == []
    validated = await client.post("/v1/definitions/validate", json={"definition": CALLS.replace("charge", "refund")})
    assert [each["id"] for each in validated.json()["diagnostics"]] == ["unknown-function"]


async def test_missing_queues_and_topics_are_warnings(client: httpx.AsyncClient) -> None:
    sent = "  resourceArn: acs:mns:::/{}/messages\n  serviceParams: {{MessageBody: $}}\n"
    steps = [f"- type: task\n  name: {kind}\n{sent.format(f'{kind}/orders')}" for kind in ("queues", "topics")]
    definition = f"version: v1\ntype: flow\nsteps:\n{''.join(steps)}"
    created = (await deploy(client, definition)).json()
    assert [(each["id"], each["line"], each["target"]) for each in created["warnings"]] == [
        ("unknown-queue", 4, {"kind": "queue", "name": "orders"}),
        ("unknown-topic", 8, {"kind": "topic", "name": "orders"}),
    ]
    await client.put("/queues/orders", content="<Queue/>")
    await client.put("/topics/orders", content="<Topic/>")
    assert (await deploy(client, definition)).json()["warnings"] == []


async def test_a_strict_deployment_is_refused_on_warnings(client: httpx.AsyncClient) -> None:
    problem = assert_problem(await deploy(client, CALLS, query="?strict=true"), 400, "InvalidArgument")
    assert [each["severity"] for each in problem["diagnostics"]] == ["warning", "warning"]
    assert "line 4, column" in problem["detail"]
    assert (await client.get(FLOW)).status_code == 404
    assert (await deploy(client, PASS, query="?strict=true")).status_code == 201
    assert_problem(await deploy(client, CALLS, query="?strict=true"), 400, "InvalidArgument")
    assert (await client.get(FLOW)).json()["definition"] == PASS


async def test_a_change_can_be_tried(client: httpx.AsyncClient) -> None:
    """`dryRun` finds what is wrong with it, and changes nothing."""
    await client.put(FLOW, json={"definition": PASS})
    before = await client.get(FLOW)
    tried = await client.patch(f"{FLOW}?dryRun=true", json={"onRetriesExhausted": "waitForRedrive"})
    assert (tried.status_code, tried.json()["onRetriesExhausted"]) == (200, "fail")
    assert (await client.get(FLOW)).headers["etag"] == before.headers["etag"]
    for wrong in ({"onRetriesExhausted": "wait"}, {"retentionDays": -1}, {"definition": "a: 1"}):
        assert (await client.patch(f"{FLOW}?dryRun=true", json=wrong)).status_code == 400
    missing = await client.patch("/v1/flows/absent?dryRun=true", json={"retentionDays": 1})
    assert_problem(missing, 404, "FlowNotExists")
    stale = await client.patch(f"{FLOW}?dryRun=true", json={"retentionDays": 1}, headers={"if-match": '"old"'})
    assert_problem(stale, 412, "PreconditionFailed")


async def test_a_flow_that_starts_itself_is_not_missing(client: httpx.AsyncClient) -> None:
    name = FLOW.rpartition("/")[2]
    start = f"  - {{type: task, name: Again, resourceArn: 'acs:fnf:::flow/{name}'}}\n"
    choice = "  - {type: choice, name: C, choices: [{condition: $.done == true, goto: End}], default: {goto: Again}}\n"
    steps = "version: v1\ntype: flow\nsteps:\n"
    for _ in range(2):  # when it is new, and when it exists
        (warning,) = (await deploy(client, steps + start)).json()["warnings"]
        assert (warning["id"], warning["line"], warning["target"]) == ("starts-itself", 4, None)
    bounded = f"{steps}{choice}{start}  - {{type: succeed, name: End}}\n"
    await client.delete(FLOW)
    assert (await deploy(client, bounded)).json()["warnings"] == []
