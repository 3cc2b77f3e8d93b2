"""Checks and graphs of definitions without storing them."""

from dataclasses import replace

import httpx

from flowserver.analysis.rules import RULES
from flowserver.editing.rule_pages import rule_page
from flowserver.engine.engine import Engine
from flowserver.language.fields import KINDS, STEPS, Shape
from flowserver.server import Application
from tests.api.rest.conftest import PASS, assert_problem

HERE = "/v1/definitions/validate"
GRAPH = "/v1/definitions/graph"
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


FAILS = PASS + "    outputMappings: [{target: a, source: $local.b}]\n"


async def test_findings_of_rules_do_not_make_it_invalid(client: httpx.AsyncClient) -> None:
    report = (await client.post(HERE, content=FAILS, headers=YAML)).json()
    assert report["valid"] is True
    [found] = report["diagnostics"]
    assert (found["id"], found["severity"], found["line"]) == ("always-missing", "error", 6)
    assert found["page"] == "docs/reference/rules.md#always-missing"
    report = (await client.post(f"{HERE}?rules=false", content=FAILS, headers=YAML)).json()
    assert report == {"valid": True, "diagnostics": []}
    assert (await client.put("/v1/flows/fails", content=FAILS, headers=YAML)).status_code == 201


async def test_a_way_through_the_flow_shows_a_finding(client: httpx.AsyncClient) -> None:
    page = rule_page("missing-on-path")
    report = (await client.post(HERE, content=page.flawed, headers=YAML)).json()
    [found] = [each for each in report["diagnostics"] if each["id"] == "missing-on-path"]
    assert [(step["step"], step["line"]) for step in found["path"]] == [("charge", 5), ("mail", 11)]


async def test_comments_suppress_findings_of_rules_and_missing_functions(client: httpx.AsyncClient) -> None:
    comment = "  # flowserver: ignore unknown-function it comes later\n"
    task = "  - {type: task, name: t, resourceArn: 'acs:fc:::services/a/functions/b'}\n"
    head = "version: v1\ntype: flow\nsteps:\n"
    for text, ids in ((head + task, ["unknown-function"]), (head + comment + task, [])):
        report = (await client.post(HERE, content=text, headers=YAML)).json()
        assert [each["id"] for each in report["diagnostics"]] == ids


async def test_the_rules_say_why_they_are_true(client: httpx.AsyncClient) -> None:
    rules = {rule["id"]: rule for rule in (await client.get("/v1/definitions/rules")).json()["rules"]}
    assert list(rules) == list(RULES)
    assert rules["constant-id"]["severity"] == "warning"
    assert rules["constant-id"]["flawed"].startswith("version: v1")


async def test_the_largest_definitions_are_checked_within_a_bound(client: httpx.AsyncClient, app: Application) -> None:
    engine: Engine = app.state.engine
    grows = "version: v1\ntype: flow\nsteps:\n" + "".join(
        f"  - {{type: pass, name: p{n}, outputMappings: [{{target: k{n}, source: $local.nothing}}]}}\n"
        for n in range(60)
    )
    assert len((await client.post(HERE, content=grows, headers=YAML)).json()["diagnostics"]) == 60
    engine.limits = replace(engine.limits, definition_proof_keys_max=1_000)
    assert (await client.post(HERE, content=grows, headers=YAML)).json() == {"valid": True, "diagnostics": []}


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


async def test_the_language_as_data_is_that_of_the_tables(client: httpx.AsyncClient) -> None:
    language = (await client.get("/v1/definitions/language")).json()
    kinds = {kind["name"]: kind for kind in language["kinds"]}
    assert [name for name, kind in kinds.items() if kind["isStep"]] == list(STEPS)
    assert {kind["title"] for kind in kinds.values()} == {kind.title for kind in KINDS}
    for table in KINDS:
        [kind] = [each for each in kinds.values() if each["title"] == table.title]
        told = [(each["name"], each["required"], each["description"]) for each in kind["attributes"]]
        assert told == [(each.name, each.required, each.doc) for each in table.fields.values()]
    holders = {each["name"]: each["holds"] for kind in kinds.values() for each in kind["attributes"]}
    assert set(filter(None, holders.values())) == {"step", *(name for name in kinds if not kinds[name]["isStep"])} - {
        "flow"
    }
    lists_and_maps = {
        field.name for kind in KINDS for field in kind.fields.values() if {Shape.LIST, Shape.MAP} & {*field.shapes}
    }
    assert {name for name in lists_and_maps if holders[name] is None} == {"errors", "serviceParams"}


async def test_the_values_of_the_language_are_accepted(client: httpx.AsyncClient) -> None:
    language = (await client.get("/v1/definitions/language")).json()
    values = {(kind["name"], each["name"]): each["values"] for kind in language["kinds"] for each in kind["attributes"]}
    assert values["task", "pattern"] == ["requestResponse", "sync", "waitForCallback"]
    assert values["wait", "end"] == ["true", "false"]
    assert {"FnF.ALL", "FnF.TaskTimeout", "FC.ResourceExhausted"} < {*values["retryPolicy", "errors"]}
    for version in values["flow", "version"]:
        report = (await client.post(HERE, content=PASS.replace("v1", version), headers=YAML)).json()
        assert report == {"valid": True, "diagnostics": []}


async def test_every_context_path_of_the_language_has_a_value(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/v1/definitions/language")).json()["contextPaths"]
    of_task = "$context.task.token"  # which every waitForCallback step in these tests reads
    assert of_task in paths
    mappings = [{"target": path, "source": path} for path in paths if path != of_task]
    definition = {
        "version": "v1",
        "type": "flow",
        "steps": [{"type": "pass", "name": "p", "outputMappings": mappings}],
    }
    await client.put("/v1/flows/paths", json={"definition": definition})
    run = (await client.post("/v1/flows/paths/executions?wait=30", json={})).json()
    assert run["status"] == "Succeeded"
    assert {path: value is not None for path, value in run["output"].items()} == {
        path: True for path in paths if path != of_task
    }


NESTED = """\
version: v1
type: flow
steps:
  - type: foreach
    name: pack
    iterationMapping: {collection: $.items, item: item}
    steps:
      - type: choice
        name: check
        choices:
          - condition: $.item > 1
            steps: [{type: pass, name: big}]
        default:
          steps: [{type: pass, name: small}]
  - type: parallel
    name: ship
    branches:
      - steps: [{type: pass, name: book}]
      - steps: [{type: pass, name: print, nonsense: x}]
"""


async def test_the_paths_of_a_graph_are_those_of_step_summaries(client: httpx.AsyncClient) -> None:
    text = NESTED.replace(", nonsense: x", "")
    assert (await client.put("/v1/flows/n", content=text, headers=YAML)).status_code == 201
    started = await client.post("/v1/flows/n/executions?wait=60", json={"name": "e", "input": {"items": [1, 2]}})
    assert started.json()["status"] == "Succeeded"
    steps = (await client.get("/v1/flows/n/executions/e/steps")).json()["steps"]
    graph = (await client.post(GRAPH, json={"definition": text})).json()
    assert {each["path"] for each in graph["nodes"]} == {each["path"] for each in steps}
    assert {"pack[].check.big", "ship[1].print"} <= {each["path"] for each in steps}


async def test_a_graph_leaves_out_what_is_unknown(client: httpx.AsyncClient) -> None:
    graph = (await client.post(GRAPH, content=NESTED, headers=YAML)).json()
    assert graph.keys() == {"nodes", "lists", "edges"}
    assert graph["lists"][1] == {"id": 1, "kind": "iteration", "parent": 0, "index": None, "nodes": [1]}
    assert graph["edges"][:3] == [
        {"from": 0, "to": 1, "kind": "iteration", "label": None, "index": None},
        {"from": 0, "to": 4, "kind": "next", "label": None, "index": None},
        {"from": 1, "to": 2, "kind": "option", "label": "$.item > 1", "index": 0},
    ]
    shown = graph["nodes"][0]
    assert (shown["title"], shown["line"], shown["endLine"], shown["call"]) == ("$.items", 4, 14, None)
    assert shown["foreach"] == {"source": "$.items", "item": "item", "index": None}


async def test_a_definition_with_errors_has_no_graph(client: httpx.AsyncClient) -> None:
    problem = await client.post(GRAPH, content="version: v1\ntype: flow\nsteps: []\n", headers=YAML)
    assert_problem(problem, 400, "InvalidArgument")
    assert [found["id"] for found in problem.json()["diagnostics"]] == ["empty-list"]
    assert_problem(await client.post(GRAPH, json={}), 400, "MissingRequiredParams")


async def test_a_graph_has_bounded_paths(client: httpx.AsyncClient) -> None:
    """Long names that nest deeply repeat in the path of every step below them."""
    depth, inner = 47, 900
    loops = "".join(
        f"{{type: foreach, name: {'x' * 128}, iterationMapping: {{collection: $, item: i}}, steps: ["
        for _ in range(depth)
    )
    steps = ",".join(f"{{type: pass, name: p{number}}}" for number in range(inner))
    text = f"{{version: v1, type: flow, steps: [{loops}{steps}{']}' * depth}]}}"
    problem = await client.post(GRAPH, content=text, headers=YAML)
    assert_problem(problem, 400, "InvalidArgument")
    assert "the paths of the steps" in problem.json()["detail"]
