"""The language page states how deep definitions nest, which is exactly what the parser accepts."""

import re
from collections.abc import Callable

import pytest

from flowserver.base.limits import Limits
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.parser import parse
from tests.docs.pages import DOCS

PAGE = (DOCS / "reference" / "language.md").read_text("utf-8")
STATED = re.search(
    r"at most (\d+) levels of YAML lists and\nmappings: (\d+) `foreach` within each other, or (\d+) ", PAGE
)

Wrap = Callable[[str], str]


def nested(wrap: Wrap, levels: int) -> str:
    steps = "[{type: pass, name: s}]"
    for _ in range(levels):
        steps = wrap(steps)
    return f"{{version: v1, type: flow, steps: {steps}}}"


def foreach(steps: str) -> str:
    return f"[{{type: foreach, name: s, iterationMapping: {{collection: $.l, item: i}}, steps: {steps}}}]"


def choice(steps: str) -> str:
    return f"[{{type: choice, name: s, default: {{}}, choices: [{{condition: $.a, steps: {steps}}}]}}]"


def parallel(steps: str) -> str:
    return f"[{{type: parallel, name: s, branches: [{{steps: {steps}}}]}}]"


def test_the_bound_is_that_of_the_limits() -> None:
    assert STATED is not None
    assert int(STATED[1]) == Limits().definition_depth_max


@pytest.mark.parametrize(("wrap", "number"), [(foreach, 2), (choice, 3), (parallel, 3)])
def test_steps_nest_as_deep_as_the_page_says(wrap: Wrap, number: int) -> None:
    assert STATED is not None
    levels = int(STATED[number])
    assert parse(nested(wrap, levels), Limits()).flow.root.steps
    with pytest.raises(DefinitionRejected) as caught:
        parse(nested(wrap, levels + 1), Limits())
    (found,) = caught.value.diagnostics
    assert (found.id, found.message) == ("nesting-too-deep", f"nested deeper than {STATED[1]} levels")
