"""Definitions on the pages are valid, and have the results printed below them.

A block `yaml flow` is a definition. A block `yaml run` right after it describes an execution of it: `input`, `answers`
(by service/function, flow or action, as in the conformance cases), then the expected `output` or `error`, and
optionally `entered` (steps), `received` (inputs of calls) and `waits` (seconds).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml

from flowserver.base.limits import Limits
from flowserver.language.parser import parse
from flowserver.machine.state import Status
from tests.conformance.cases import Reply
from tests.docs.pages import Block, blocks, pages
from tests.support.world import World

FLOWS = [block for page in pages() for block in blocks(page) if block.language == "yaml" and "flow" in block.marks]


def _runs() -> Iterator[tuple[Block, Block]]:
    for page in pages():
        for before, block in pairwise(blocks(page)):
            if "run" in block.marks and block.language == "yaml":
                assert "flow" in before.marks, f"{block} follows no flow"
                yield before, block


RUNS = list(_runs())


@pytest.mark.parametrize("block", FLOWS, ids=str)
def test_flows_are_valid(block: Block) -> None:
    assert parse(block.text, Limits()).flow.root.steps


def test_there_are_flows_that_run() -> None:
    assert len(RUNS) >= 8


@pytest.mark.parametrize(("flow", "run"), RUNS, ids=str)
def test_flows_have_the_results_on_the_page(flow: Block, run: Block) -> None:
    expected: dict[str, Any] = yaml.safe_load(run.text)
    scripts = by_name(expected.pop("answers", {}))
    replies = {callee: [Reply(**answer) for answer in script] for callee, script in scripts.items()}
    world = World(parse(flow.text, Limits()).flow, input=expected.pop("input", {}), replies=replies)
    execution = world.run()
    found = {
        "output": execution.output,
        "error": execution.error,
        "entered": world.entered,
        "received": world.received,
        "waits": world.pauses_seconds,
    }
    if "received" in expected:
        expected["received"] = by_name(expected["received"])
    assert {name: found[name] for name in expected} == expected
    assert execution.status is (Status.SUCCEEDED if "output" in expected else Status.FAILED)


def by_name(by_title: dict[str, Any]) -> dict[str, Any]:
    """The answers for `service/function`, under the function's name that the world uses."""
    return {title.rpartition("/")[2]: value for title, value in by_title.items()}
