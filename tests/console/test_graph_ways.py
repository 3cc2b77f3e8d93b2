"""What a graph makes of an execution's step summaries: the nodes of paths, and the edges that were taken."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.console.test_graph_layout import graph_of
from tests.support.node import NODE
from tests.support.server import ServerProcess

HEADER = "version: v1\ntype: flow\nsteps:\n"
LOOP = (
    HEADER
    + """\
  - {type: pass, name: init, outputMappings: [{target: left, source: $input.left}]}
  - type: pass
    name: count
    outputMappings: [{target: left, source: "$input.left[1]"}, {target: last, source: "$input.left[0]"}]
  - type: choice
    name: check
    inputMappings: [{target: last, source: $local.last}]
    choices:
      - {condition: $.last == "again", goto: count}
      - {condition: $.last == "fail", goto: failed}
      - condition: $.last == "more"
        steps: [{type: pass, name: more}]
        goto: done
    default: {goto: done}
  - {type: fail, name: failed}
  - {type: succeed, name: done}
"""
)
NESTED = (
    HEADER
    + """\
  - type: parallel
    name: ship
    branches:
      - steps: [{type: pass, name: same}]
      - steps:
          - type: foreach
            name: pack
            iterationMapping: {collection: $.items, item: item}
            steps: [{type: pass, name: label}]
  - type: task
    name: call
    resourceArn: acs:fc:::functions/none
    catch: [{errors: [FnF.ALL], goto: late}]
    end: true
  - {type: pass, name: late}
"""
)


@pytest.fixture(scope="module")
def rest(server: ServerProcess) -> Iterator[httpx.Client]:
    """A client that waits for executions to end."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        yield client


def steps_of(rest: httpx.Client, name: str, definition: str, given: Any) -> list[dict[str, Any]]:
    rest.put(f"/v1/flows/{name}", json={"definition": definition}).raise_for_status()
    rest.post(f"/v1/flows/{name}/executions?wait=60", json={"name": "run", "input": given}).raise_for_status()
    return rest.get(f"/v1/flows/{name}/executions/run/steps").json()["steps"]


def ask(graph: dict[str, Any], states: list[dict[str, Any]], paths: list[str]) -> tuple[list[str | None], list[str]]:
    script = Path(__file__).parent / "browser" / "ways.mjs"
    question = json.dumps([{"graph": graph, "states": states, "paths": paths}])
    done = subprocess.run([NODE, script], input=question, capture_output=True, text=True, check=True)
    [answer] = json.loads(done.stdout)
    names = [node["name"] for node in graph["nodes"]]
    taken = [
        f"{names[edge['from']]} {edge['kind']} {'' if edge['to'] is None else names[edge['to']]}".strip()
        + (f" ×{times}" if times > 1 else "")
        for edge, times in zip(graph["edges"], answer["taken"], strict=True)
        if times
    ]
    return answer["nodes"], taken


@pytest.mark.parametrize(
    ("left", "options"),
    [
        (["again", ["again", ["done", 0]]], ["check option count ×2", "check default done"]),
        (["again", ["again", ["more", 0]]], ["check option count ×2", "check option more", "check goto done"]),
        (["fail", 0], ["check option failed"]),
        (["more", 0], ["check option more", "check goto done"]),
        (["done", 0], ["check default done"]),
    ],
    ids=["back twice", "back twice, then through its steps", "to a failure", "through its steps", "otherwise"],
)
def test_options_that_were_taken(rest: httpx.Client, unique: str, left: Any, options: list[str]) -> None:
    _, taken = ask(graph_of(LOOP), steps_of(rest, unique, LOOP, {"left": left}), [])
    assert [each for each in taken if each.startswith("check")] == options
    looped = " ×3" if left[0] == "again" else ""
    assert {"init next count", f"count next check{looped}"} <= set(taken)


def test_catches_and_paths(rest: httpx.Client) -> None:
    steps = steps_of(rest, "nested", NESTED, {"items": [1, 2]})
    paths = ["ship[1].pack[17].label", "ship[1].pack[0]", "ship[1]", "ship[0].same", "ship[1].same", "none", ""]
    nodes, taken = ask(graph_of(NESTED), steps, paths)
    assert nodes == ["ship[1].pack[].label", "ship[1].pack", "ship", "ship[0].same", "ship", None, None]
    assert taken == [
        *("ship branch same", "ship branch pack", "ship next call", "same next"),
        *("pack iteration label ×2", "pack next", "label next ×2", "call catch late", "late next"),
    ]


def test_only_the_option_taken_has_steps_if_another_has_steps_of_the_same_path(rest: httpx.Client, unique: str) -> None:
    choices = (
        "choices: [{condition: $.a == 1, steps: [{type: pass, name: p}]}], default: {steps: [{type: pass, name: p}]}"
    )
    definition = f"{HEADER}  - {{type: choice, name: c, {choices}}}\n"
    _, taken = ask(graph_of(definition), steps_of(rest, unique, definition, {"a": 2}), [])
    assert taken == ["c default p", "c next", "p next"]
