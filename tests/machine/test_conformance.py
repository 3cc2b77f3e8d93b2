"""The conformance cases against the machine itself, in virtual time."""

import pytest

from flowserver.base.limits import Limits
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.parser import parse
from tests.conformance.cases import FlowCase, flow_cases
from tests.support.world import World

RUN = [case for case in flow_cases() if case.refused is None]
REFUSED = [case for case in flow_cases() if case.refused is not None]


@pytest.mark.parametrize("case", RUN, ids=str)
def test_flow(case: FlowCase) -> None:
    limits = Limits.of(case.limits)
    world = World(parse(case.flow, limits).flow, input=case.input, replies=case.replies, limits=limits)
    execution = world.run()
    came_of_it = {
        "status": str(execution.status),
        "output": execution.output,
        "error": execution.error,
        "cause": execution.cause,
        "received": {name: world.received.get(name) for name in case.expect.get("received", {})},
        "pauses_seconds": world.pauses_seconds,
        "entered": world.entered,
    }
    assert {key: came_of_it[key] for key in case.expect} == case.expect


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case: FlowCase) -> None:
    with pytest.raises(DefinitionRejected) as refusal:
        parse(case.flow, Limits.of(case.limits))
    assert case.refused in {diagnostic.id for diagnostic in refusal.value.diagnostics}
