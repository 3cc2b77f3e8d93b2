"""Flows that start themselves on every way: directly, through others, and in what steps hold."""

import pytest

from flowserver.analysis.sub_flow_cycles import starting_itself, starts_of
from flowserver.base.limits import Limits
from flowserver.language.graph import Flow
from flowserver.language.parser import parse


def flow(steps: str) -> Flow:
    return parse(f"version: v1\ntype: flow\nsteps:\n{steps}", Limits()).flow


def start(name: str, more: str = "") -> str:
    return f"{{type: task, name: S{name}, resourceArn: 'acs:fnf:::flow/{name}'{more}}}"


def choice(first: str, default: str) -> str:
    return f"- {{type: choice, name: C, choices: [{{condition: $.a == 1, {first}}}], default: {{{default}}}}}\n"


OWN = start("me")
ACTION = "{type: task, name: A, action: 'fnf:StartExecution', serviceParams: {FlowName: me}}"


@pytest.mark.parametrize(
    ("steps", "starts"),
    [
        (f"- {OWN}\n", True),
        (f"- {ACTION}\n", True),
        (f"- {start('me', ', pattern: sync')}\n", True),
        (f"- {{type: pass, name: a}}\n- {OWN}\n", True),
        (choice(f"steps: [{OWN}]", f"steps: [{OWN}]"), True),
        (choice(f"steps: [{OWN}]", "goto: End") + "- {type: succeed, name: End}\n", False),
        (choice("goto: Sme", "goto: Sme") + f"- {OWN}\n", True),
        (
            f"- {{type: parallel, name: P, branches: [{{steps: [{OWN}]}}, {{steps: [{{type: pass, name: a}}]}}]}}\n",
            True,
        ),
        (
            "- {type: foreach, name: F, iterationMapping: {collection: $.all, item: it}, steps: [" + OWN + "]}\n",
            False,
        ),
        (f"- {{type: fail, name: End}}\n- {OWN}\n", False),
        (f"- {start('other')}\n", False),
    ],
)
def test_a_flow_starts_itself_if_every_way_does(steps: str, starts: bool) -> None:
    found = starting_itself("me", flow(steps))
    assert (found is not None) == starts
    assert found is None or found.message == "every way through `me` starts itself"


def test_flows_that_start_one_another_are_named_in_order() -> None:
    flows = {
        "a": flow(f"- {start('b')}\n"),
        "b": flow(f"- {start('c', ', pattern: sync')}\n"),
        "c": flow(f"- {{type: pass, name: p}}\n- {start('a')}\n"),
        "d": flow(f"- {start('a')}\n"),
    }
    starts = starts_of(flows)
    found = {name: starting_itself(name, each, starts) for name, each in flows.items()}
    assert found["b"] is not None
    assert found["b"].message == "every way through `b` starts itself again: `b` → `c` → `a` → `b`"
    assert found["c"] is not None
    assert found["c"].span.line == 5
    assert found["d"] is None
