"""Checks of definitions without storing them."""

import httpx

from tests.api.rest.conftest import PASS, assert_problem

HERE = "/v1/definitions/validate"
YAML = {"Content-Type": "text/yaml"}
CHOICE = """\
version: v1
type: flow
steps:
  - type: choice
    name: c
    choices:
      - condition: $.a == 1
        goto: end
  - {type: succeed, name: end}
"""


async def test_a_valid_definition(client: httpx.AsyncClient) -> None:
    for response in (
        await client.post(HERE, json={"definition": PASS}),
        await client.post(HERE, content=PASS, headers=YAML),
    ):
        assert (response.status_code, response.json()) == (200, {"valid": True, "diagnostics": []})
    assert (await client.get("/v1/flows")).json()["flows"] == []


async def test_warnings_do_not_make_it_invalid(client: httpx.AsyncClient) -> None:
    report = (await client.post(HERE, content=CHOICE, headers=YAML)).json()
    assert report["valid"] is True
    assert [(found["id"], found["severity"]) for found in report["diagnostics"]] == [
        ("choice-without-default", "warning")
    ]


async def test_all_errors_are_reported_at_once(client: httpx.AsyncClient) -> None:
    definition = "version: v2\ntype: flow\nsteps:\n  - {type: pass, name: p, nmae: q}\n  - {type: pass, name: p}\n"
    report = (await client.post(HERE, content=definition, headers=YAML)).json()
    assert report["valid"] is False
    found = [(each["line"], each["id"]) for each in report["diagnostics"]]
    assert found == [(1, "bad-version"), (4, "unknown-attribute"), (5, "duplicate-name")]
    assert all(each["severity"] == "error" for each in report["diagnostics"])


async def test_no_input_causes_a_server_error(client: httpx.AsyncClient) -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'}, *a]\n" for n in range(60))
    for text in ("", "\0", "[" * 10_000, bomb, "- " * 5000, "!!python/object:os.system {}", "\ud7ff\ufeff"):
        report = (await client.post(HERE, content=text.encode(), headers=YAML)).json()
        assert report["valid"] is False
        assert report["diagnostics"]


async def test_it_needs_a_definition(client: httpx.AsyncClient) -> None:
    assert_problem(await client.post(HERE, json={}), 400, "MissingRequiredParams")
    report = (await client.post(HERE, json={"definition": {"version": "v1"}})).json()
    assert [found["id"] for found in report["diagnostics"]] == ["missing-attribute"] * 2
    assert_problem(await client.post(HERE, json={"definition": PASS, "name": "x"}), 400, "InvalidArgument")
