"""The conformance flows: accepted if they are expected to run, else refused for the reason they name."""

import pytest

from tests.conformance.cases import FlowCase, flow_cases
from tests.language.definitions import LIMITS, diagnostics_of, flow_of

ACCEPTED = [case for case in flow_cases() if case.refused is None]
REFUSED = [case for case in flow_cases() if case.refused is not None]


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_accepted(case: FlowCase) -> None:
    assert flow_of(case.flow, LIMITS.of(case.limits)).root.steps


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case: FlowCase) -> None:
    assert [found.id for found in diagnostics_of(case.flow)] == [case.refused]
