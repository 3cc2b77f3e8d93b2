"""Tests of definitions that the server runs, without storing anything and without calling anything."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from flowserver.engine.engine import Engine
from flowserver.server import Application
from tests.api.rest.conftest import assert_problem

HERE = "/v1/definitions/test"
ORDER = """\
version: v1
type: flow
steps:
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay/functions/charge
    retry: [{errors: [Busy]}]
    catch: [{errors: [Declined], goto: Refused}]
  - {type: succeed, name: Done}
  - {type: fail, name: Refused, error: NotPaid, cause: declined}
"""
TESTS = """\
flow: order.yaml
functions: {charge: [{error: Busy}, {return: {paid: true}, after: 1m}]}
tests:
  - {name: paid, expect: {output: {paid: true}, took: 61s}}
  - name: declined
    functions: {charge: {error: Declined}}
    expect: {error: Broken}
"""
LOOP = """\
version: v1
type: flow
steps:
  - {type: pass, name: Turn}
  - {type: choice, name: Again, choices: [{condition: 1 == 1, goto: Turn}]}
"""
PACK = """\
version: v1
type: flow
steps:
  - type: foreach
    name: Pack
    iterationMapping: {collection: $.all, item: it}
    steps: [{type: task, name: Charge, resourceArn: 'acs:fc:::services/pay/functions/charge'}]
"""
MAKES = """\
version: v1
type: flow
steps:
  - {type: pass, name: Make, outputMappings: [{target: all, source: '$input.all[*].n'}]}
  - {type: choice, name: Again, choices: [{condition: 1 == 1, goto: Make}]}
"""
OUT = """\
version: v1
type: flow
steps: [{type: pass, name: Out, outputMappings: [{target: text, source: $input.text}]}]
"""


async def run(client: httpx.AsyncClient, definition: object, tests: object) -> Any:
    response = await client.post(HERE, json={"definition": definition, "tests": tests})
    assert response.status_code == 200, response.text
    return response.json()


async def test_each_test_tells_what_it_came_to(client: httpx.AsyncClient) -> None:
    report = await run(client, ORDER, TESTS)
    assert (report["passed"], report["mistakes"], report["warnings"]) == (False, [], [])
    paid, declined = report["tests"]
    assert (paid["outcome"], paid["status"], paid["output"], paid["path"]) == (
        "passed",
        "Succeeded",
        {"paid": True},
        ["Charge", "Done"],
    )
    assert (paid["calls"], paid["tookSeconds"], paid["failedStep"]) == (2, 61.0, None)
    assert [(step["path"], step["status"], step["attempts"]) for step in paid["steps"]] == [
        ("Charge", "Succeeded", 2),
        ("Done", "Succeeded", 0),
    ]
    assert (declined["outcome"], declined["line"], declined["status"]) == ("failed", 5, "Failed")
    assert (declined["error"], declined["cause"], declined["failedStep"]) == ("NotPaid", "declined", "Refused")
    assert [(step["path"], step["status"]) for step in declined["steps"]] == [
        ("Charge", "Caught"),
        ("Refused", "Failed"),
    ]
    [failure] = declined["failures"]
    assert failure["message"] == "expected the error Broken, got Failed with NotPaid (declined)"
    assert (failure["line"], failure["column"], failure["definitionLine"]) == (7, 21, 10)


async def test_it_tells_the_coverage(client: httpx.AsyncClient) -> None:
    report = await run(client, ORDER, "flow: x\nfunctions: {charge: {return: {}}}\ntests: [{name: a}]")
    coverage = report["coverage"]
    assert (coverage["percent"], coverage["steps"], coverage["catches"]) == (
        40.0,
        {"reached": 2, "total": 3},
        {"reached": 0, "total": 1},
    )
    assert [(each["line"], each["what"]) for each in coverage["notReached"]] == [
        (7, "retry policy 1 of step Charge"),
        (8, "catch rule 1 of step Charge"),
        (10, "step Refused"),
    ]


async def test_the_tests_are_of_the_definition_sent_and_no_file_is_read(client: httpx.AsyncClient) -> None:
    named = ORDER.replace(
        "  - {type: succeed, name: Done}",
        "    end: true\n    outputMappings: [{target: n, source: $context.flow.name}]",
    )
    tests = {"flow": "../other/shop.yaml", "steps": {"Charge": {"return": {}}}, "tests": [{"name": "a"}]}
    report = await run(client, named, tests)
    assert report["tests"][0]["output"] == {"n": "shop"}


async def test_mistakes_of_the_test_file_have_their_places(client: httpx.AsyncClient) -> None:
    report = await run(client, ORDER, "flow: order.yaml\ntests: [{nmae: a}]\n")
    assert (report["passed"], report["tests"], report["coverage"]) == (False, [], None)
    assert [(each["id"], each["line"], each["column"]) for each in report["mistakes"]] == [
        ("missing-attribute", 2, 10),
        ("unknown-attribute", 2, 10),
    ]


async def test_a_definition_with_errors_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(HERE, json={"definition": "version: v1", "tests": TESTS})
    assert_problem(response, 400, "InvalidArgument")
    assert response.json()["diagnostics"]


async def test_sub_flows_do_not_run_on_a_server(client: httpx.AsyncClient) -> None:
    child = ORDER.replace("acs:fc:::services/pay/functions/charge", "acs:fnf:::flow/child")
    report = await run(client, child, "flow: f\nflows: {child: {real: /etc/passwd}}\ntests: [{name: a}]")
    [mistake] = report["mistakes"]
    assert mistake["message"] == "`real` is not available on a server, which has no files"


@pytest.mark.parametrize("real", ["http://127.0.0.1:1/", "handlers.py:f"])
async def test_a_server_makes_no_real_calls(client: httpx.AsyncClient, real: str) -> None:
    report = await run(client, ORDER, {"flow": "f", "functions": {"charge": {"real": real}}, "tests": [{"name": "a"}]})
    [mistake] = report["mistakes"]
    assert mistake["message"] == "`real` is not available on a server, which makes no calls for tests"
    assert mistake["hint"] == "mock the call, for example `{return: {}}`, or run `flowserver test`"


async def test_nothing_is_stored(client: httpx.AsyncClient) -> None:
    await run(client, ORDER, TESTS)
    assert (await client.get("/v1/flows")).json()["flows"] == []


@pytest.mark.parametrize("tests", ["", "\0", "[" * 10_000, "flow: x\ntests: []", "flow: x\ntests: [1]", "&a [*a]"])
async def test_no_text_causes_a_server_error(client: httpx.AsyncClient, tests: str) -> None:
    report = await run(client, ORDER, tests)
    assert report["mistakes"]


@pytest.fixture
def bounded(client: httpx.AsyncClient, app: Application) -> httpx.AsyncClient:
    """A client of a server that runs 1,000 events for a request, and 600 for a test."""
    engine: Engine = app.state.engine
    engine.limits = replace(engine.limits, flow_tests_request_events_max=1_000, flow_test_events_max=600)
    return client


async def test_all_tests_of_a_request_have_one_bound(bounded: httpx.AsyncClient) -> None:
    report = await run(bounded, LOOP, {"flow": "l", "tests": [{"name": name} for name in "abc"]})
    assert [test["failures"][0]["message"] for test in report["tests"]] == [
        "the execution does not end: it has made more than 600 events",
        "all tests together have made more than 1000 events, the most that a server gives them",
        "all tests together have made more than 1000 events, the most that a server gives them",
    ]


async def test_large_data_counts_as_many_events(bounded: httpx.AsyncClient) -> None:
    large = {f"k{number}": "x" * 900 for number in range(30)}
    report = await run(bounded, LOOP, {"flow": "l", "tests": [{"name": "a", "input": {"large": large}}]})
    [test] = report["tests"]
    assert test["failures"][0]["message"].startswith("all tests together")
    assert len(test["path"]) < 100


async def test_large_values_that_steps_make_count_too(bounded: httpx.AsyncClient) -> None:
    tests = {"flow": "m", "input": {"all": [{"n": 1}] * 4_000}, "tests": [{"name": "a"}]}
    report = await run(bounded, MAKES, tests)
    assert report["tests"][0]["failures"][0]["message"].startswith("all tests together have made more than 1000 events")
    assert len(report["tests"][0]["path"]) < 300


async def test_the_time_of_the_processor_is_bounded(client: httpx.AsyncClient, app: Application) -> None:
    engine: Engine = app.state.engine
    engine.limits = replace(engine.limits, flow_tests_request_seconds_max=0)
    report = await run(client, ORDER, TESTS)
    assert [test["failures"][0]["message"] for test in report["tests"]] == [
        "all tests together have taken more than 0 seconds of the processor, the most that a server gives them"
    ] * 2


async def test_many_mocks_count_too(bounded: httpx.AsyncClient) -> None:
    steps = {f"Pack[{number}].Charge": {"return": {}} for number in range(2_000)}
    tests = {"flow": "p", "input": {"all": [0] * 20}, "steps": {**steps, "Charge": {"always": True}}}
    report = await run(bounded, PACK, {**tests, "tests": [{"name": "a"}]})
    assert report["tests"][0]["failures"][0]["message"].startswith("all tests together")
    assert (await run(bounded, PACK, {**tests, "steps": {"Charge": {"always": True}}, "tests": [{"name": "a"}]}))[
        "passed"
    ]


async def test_documents_that_are_too_large_are_left_out(client: httpx.AsyncClient) -> None:
    large = {"text": "x" * 80_000}
    tests = {"flow": "p", "input": large, "tests": [{"name": f"t{number}"} for number in range(60)]}
    report = await run(client, OUT, tests)
    assert report["passed"]
    shown = [test["output"] == large for test in report["tests"]]
    assert shown == [True] * 52 + [False] * 8
    assert report["tests"][59]["path"] is None


async def test_requests_that_would_wait_too_long_are_refused(client: httpx.AsyncClient, app: Application) -> None:
    app.state.operations.flow_tests._thread._pending_max = 0  # as if 16 requests waited
    assert_problem(await client.post(HERE, json={"definition": ORDER, "tests": TESTS}), 429, "ResourceThrottled")
