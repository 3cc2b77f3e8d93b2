"""Definitions on the pages are valid, and come to what stands below them.

A block `yaml flow` is a definition. A block `yaml run` right after it says how an execution of it goes:
`input`, `answers` (by service/function, flow or action, as in the conformance cases), then what must come of it:
`output` or `error`, and perhaps `entered` (steps), `received` (inputs of calls) and `waits` (seconds).
"""

from collections.abc import Iterator
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
        found = blocks(page)
        for before, block in zip(found, found[1:], strict=False):
            if "run" in block.marks and block.language == "yaml":
                assert "flow" in before.marks, f"{block} follows no flow"
                yield before, block


RUNS = list(_runs())


@pytest.mark.parametrize("block", FLOWS, ids=str)
def test_flows_are_valid(block: Block) -> None:
    assert parse(block.text, Limits()).flow.root.steps


def test_there_are_flows_that_run() -> None:
    assert len(RUNS) >= 8


@pytest.mark.parametrize(("flow", "run"), RUNS, ids=lambda block: str(block))
def test_flows_come_to_what_the_page_says(flow: Block, run: Block) -> None:
    expected: dict[str, Any] = yaml.safe_load(run.text)
    answers = {_name(callee): [Reply(**one) for one in script] for callee, script in expected.pop("answers", {}).items()}
    world = World(parse(flow.text, Limits()).flow, input=expected.pop("input", {}), replies=answers)
    execution = world.run()
    found = {
        "output": execution.output,
        "error": execution.error,
        "entered": world.entered,
        "received": world.received,
        "waits": world.pauses_seconds,
    }
    if "received" in expected:
        expected["received"] = {_name(callee): events for callee, events in expected["received"].items()}
    assert {name: found[name] for name in expected} == expected
    assert execution.status is (Status.SUCCEEDED if "output" in expected else Status.FAILED)


def _name(callee: str) -> str:
    """The name of the function or flow, as the world knows it."""
    return callee.rpartition("/")[2]
