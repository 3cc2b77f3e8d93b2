"""No error is found in a flow that is right: examples, the flows of all pages, the conformance cases.

A rule that is true of a flow which shows just that is in TRUE_OF. What is counted as the most is never less than what
an execution takes.
"""

from statistics import median
from time import process_time

import pytest

from flowserver.analysis.proving import prove
from flowserver.base.limits import Limits
from flowserver.language.diagnostics import Severity
from flowserver.language.parser import parse
from tests.conformance.cases import FlowCase, flow_cases
from tests.docs.pages import ROOT, blocks, pages
from tests.support.world import World

MEDIAN_MS_MAX = 100

TRUE_OF = {"$local.color` finds nothing"}
"""What a page shows on purpose."""


def _flows() -> dict[str, str]:
    flows = {str(case): case.flow for case in flow_cases() if case.refused is None}
    for file in sorted((ROOT / "examples").rglob("*.yaml")):
        if file.name != "functions.yaml" and ".flowtest." not in file.name and file.parent.name != "monitoring":
            flows[str(file.relative_to(ROOT))] = file.read_text("utf-8")
    for page in pages():
        flows |= {
            str(block): block.text for block in blocks(page) if block.language == "yaml" and "flow" in block.marks
        }
    return flows


FLOWS = _flows()


@pytest.mark.parametrize("name", FLOWS)
def test_nothing_false_is_found(name: str) -> None:
    errors = [found.message for found in prove(FLOWS[name], Limits()).findings if found.severity is Severity.ERROR]
    assert [message for message in errors if not any(known in message for known in TRUE_OF)] == []


def test_the_examples_have_no_warnings_but_these() -> None:
    found = {
        (name, each.id)
        for name, text in FLOWS.items()
        if name.startswith("examples")
        for each in prove(text, Limits()).findings
    }
    assert found == {
        ("examples/callback/flow.yaml", "callback-without-timeout"),
        ("examples/polling/flow.yaml", "choice-without-default"),
    }


def test_it_is_fast() -> None:
    assert len(FLOWS) > 50
    assert median(map(_milliseconds, FLOWS.values())) < MEDIAN_MS_MAX


def _milliseconds(text: str) -> float:
    begun = process_time()
    prove(text, Limits())
    return (process_time() - begun) * 1000


@pytest.mark.parametrize("case", [case for case in flow_cases() if case.refused is None], ids=str)
def test_the_worst_case_is_not_passed(case: FlowCase) -> None:
    limits = Limits.of(case.limits)
    world = World(parse(case.flow, limits).flow, input=case.input, replies=case.replies, limits=limits)
    world.run()
    worst = prove(case.flow, limits).worst_case
    assert worst is not None
    assert len(world.events) <= worst.events
    assert sum(len(inputs) for inputs in world.received.values()) <= worst.calls
