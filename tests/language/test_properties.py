"""Properties of the parser: for any text it returns a graph or printable diagnostics."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from flowserver.language.diagnostics import DefinitionRejected, Severity, render
from flowserver.language.fields import KINDS, STEPS
from flowserver.language.parser import parse
from tests.language.definitions import HEADER, LIMITS

UNTIMED = settings(deadline=None)  # a busy machine is not a failure

NAMES = st.sampled_from(sorted({name for kind in KINDS for name in kind.fields}))
EXPRESSIONS = ["$", "$.a", "$input.a", "$.a ==", "$local..b"]
RESOURCES = ["acs:fc:::functions/f", "acs:fnf:::flow/f", "fnf:StartExecution", "ocr:Read", "sync", "FnF.ALL"]
OTHERS = ["a", "b", "v1", "flow", "2030-01-01T00:00:00Z", "", "\x1b", "中"]
WORDS = st.one_of(st.sampled_from([*STEPS, *EXPRESSIONS, *RESOURCES, *OTHERS]), st.text(max_size=5))
SCALARS = st.one_of(WORDS, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(NAMES, WORDS), inner, max_size=5)),
    max_leaves=15,
)
STEP_TYPES = st.sampled_from(sorted(STEPS))
NEAR_STEPS = st.builds(
    lambda kind, name, rest: {"type": kind, "name": name, **rest},
    STEP_TYPES,
    st.sampled_from("abc"),
    st.dictionaries(NAMES, VALUES, max_size=4),
)
NEAR_FLOWS = st.builds(
    lambda steps: {"version": "v1", "type": "flow", "steps": steps}, st.lists(NEAR_STEPS, max_size=4)
)
MARKS = ["- ", ": ", "\n", "  ", "? ", "---", "...", "<<", "&a ", "*a", "!t ", "!Ref ", *"{}[],'\"|>#%@`\\"]
CHARACTERS = ["\t", "\r", "\x00", "\ufeff", "\ud800", "\x85"]
YAML_PIECES = st.sampled_from([*MARKS, *CHARACTERS, "a", "1", "type", "steps", "pass"])


def answers(text: str) -> None:
    try:
        found = parse(text, LIMITS, allow_ref_tags=True).warnings
    except DefinitionRejected as rejected:
        found = rejected.diagnostics
        assert any(item.severity is Severity.ERROR for item in found)
    else:
        assert all(item.severity is Severity.WARNING for item in found)
    assert list(found) == sorted(found, key=lambda item: (item.span.line, item.span.column))
    for item in found:
        render(item, text, "f").encode("utf-8")


@UNTIMED
@given(st.one_of(st.text(), st.text(st.characters()), st.lists(YAML_PIECES, max_size=25).map("".join)))
@example("---")
@example("a: |\n")
@example("? |\n")
@example("- &a\n- *a\n")
def test_any_text_is_answered(text: str) -> None:
    answers(text)
    answers(HEADER + text)


@UNTIMED
@given(VALUES)
def test_any_value_is_answered(value: Any) -> None:
    answers(json.dumps(value))


@UNTIMED
@given(NEAR_FLOWS)
def test_anything_near_a_flow_is_answered(flow: Any) -> None:
    answers(json.dumps(flow, indent=1))


@UNTIMED
@given(SCALARS)
def test_constants_arrive_exactly(value: Any) -> None:
    constant = ["", value]  # in a list, where texts are never references
    steps = [{"type": "pass", "name": "a", "outputMappings": [{"target": "t", "source": constant}]}]
    flow = parse(json.dumps({"version": "v1", "type": "flow", "steps": steps}), LIMITS).flow
    mappings = flow.root.steps[0].output_mappings
    assert mappings is not None
    assert repr(mappings[0].source) == f"Constant(value={constant!r})"
