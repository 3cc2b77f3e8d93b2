"""The cost of a check, counted: expressions compiled, hints looked up, findings kept, units between pauses."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.base.limits import Limits
from flowserver.language.check_cost import HINTS_MAX, PAUSE_UNITS, Work
from flowserver.language.diagnostics import DIAGNOSTICS_MAX, DefinitionRejected, Diagnostic, Severity
from flowserver.language.parser import parse, parse_stored
from flowserver.language.source import TAG_DIRECTIVES_MAX
from tests.language.definitions import HEADER, LIMITS, diagnostics_of, ids_of
from tests.language.test_properties import UNTIMED

ALIASES = 9_000
UNITS_PER_VALUE = 4
"""The most units that one value of a definition costs: an event, an attribute, a search for paths,
an expression begun.
"""


def checked(text: str, limits: Limits = LIMITS) -> tuple[tuple[Diagnostic, ...], Work]:
    """The findings in a text, and the work of the check."""
    work = Work()
    try:
        return parse(text, limits, work=work).warnings, work
    except DefinitionRejected as rejected:
        return rejected.diagnostics, work


def most_units(limits: Limits) -> int:
    """An upper bound for every check of a definition within these limits."""
    return UNITS_PER_VALUE * limits.definition_nodes_max + limits.definition_bytes_max


def options(first: str) -> str:
    return f"{HEADER}- {{type: choice, name: a, default: {{}}, choices: [&o {first}{', *o' * ALIASES}]}}\n"


def mappings(source: str) -> str:
    entries = f"&m {{target: t, source: {source}}}{', *m' * ALIASES}"
    return f"{HEADER}- {{type: pass, name: a, outputMappings: [{entries}]}}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (options("{condition: $.a == 1 && $.b == 2}"), []),
        (options("{condition: $.a.}"), ["bad-condition"]),
        (options("{condition: $.a, goto: b}"), ["unknown-goto"]),
        (mappings("$input.a"), []),
        (mappings("$local.."), ["bad-path"]),
    ],
)
def test_an_expression_is_compiled_once_for_all_its_aliases(text: str, found: list[str]) -> None:
    diagnostics, work = checked(text)
    assert [item.id for item in diagnostics if item.severity is Severity.ERROR] == found
    assert work.compiled == 1
    assert work.units < most_units(LIMITS)


def test_a_text_that_resembles_a_path_is_reported_once_for_all_its_aliases() -> None:
    constant = f"[&x $.a{', *x' * ALIASES}]"
    text = f"{HEADER}- {{type: pass, name: a, outputMappings: [{{target: t, source: {constant}}}]}}\n"
    assert ids_of(text) == ["path-as-constant"]


@pytest.mark.parametrize("value", ["'{}'", "[1, '{}']"])
def test_text_is_charged_for_each_alias_before_it_is_expanded(value: str) -> None:
    anchored = value.format("x" * 1_000)
    within, past = (f"a: &a {anchored}\nb: [{', '.join(['*a'] * times)}]\n" for times in (9, 10))
    limits = replace(LIMITS, definition_characters_max=10_900)
    assert "too-much-text" not in ids_of(within, limits)
    (found,) = diagnostics_of(past, limits)
    assert (found.id, found.span.line) == ("too-much-text", 2)
    assert "at most 10900 characters" in found.message


def test_aliases_of_a_long_text_stop_the_check_at_the_limit() -> None:
    condition = " || ".join(f"$.a{number}" for number in range(400))
    diagnostics, work = checked(options(f"{{condition: '{condition}'}}"))
    assert [item.id for item in diagnostics] == ["too-much-text"]
    assert work.units < LIMITS.definition_characters_max // len(condition) + 100
    assert work.compiled == 0


def test_hints_are_looked_up_for_the_first_errors_only() -> None:
    steps = "".join(
        f"- {{type: choice, name: step{number}, default: {{goto: stepp{number}}}}}\n" for number in range(90)
    )
    diagnostics, work = checked(HEADER + steps)
    assert [item.id for item in diagnostics] == ["unknown-goto"] * 90
    assert [item.hint is not None for item in diagnostics] == [True] * HINTS_MAX + [False] * (90 - HINTS_MAX)
    assert work.hints == HINTS_MAX


def test_unknown_attributes_share_those_hints() -> None:
    steps = "".join(f"- {{type: pass, name: a{number}, ends: true, nmae: b}}\n" for number in range(45))
    diagnostics, work = checked(HEADER + steps)
    assert len(diagnostics) == 90
    assert work.hints == HINTS_MAX


@pytest.mark.parametrize("text", ["- {type: choice, name: a%d, default: {goto: b}}\n", "- a%d\n", "- {n: a%d}\n"])
def test_checking_stops_after_a_hundred_errors(text: str) -> None:
    within, past = (HEADER + "".join(text % number for number in range(count)) for count in (50, 1_900))
    assert len(diagnostics_of(within)) <= DIAGNOSTICS_MAX
    *found, last = diagnostics_of(past)
    assert len(found) == DIAGNOSTICS_MAX
    assert (last.id, last.severity) == ("checking-stopped", Severity.ERROR)
    assert last.message == "checking stopped after 100 errors"
    assert last.span == found[-1].span


def test_exactly_a_hundred_errors_are_complete() -> None:
    assert ids_of(HEADER + "- 1\n" * DIAGNOSTICS_MAX) == ["wrong-type"] * DIAGNOSTICS_MAX
    assert ids_of(HEADER + "- 1\n" * (DIAGNOSTICS_MAX + 1)) == ["wrong-type"] * DIAGNOSTICS_MAX + ["checking-stopped"]


def test_a_refusal_mentions_possible_further_errors() -> None:
    with pytest.raises(DefinitionRejected) as caught:
        parse(HEADER + "- 1\n" * 500, LIMITS)
    assert caught.value.message.endswith("(and more; flowserver validate shows 100)")


def test_yaml_errors_stop_it_too() -> None:
    found = ids_of("a: 1\n" * 20_000)
    assert found[-2:] == ["duplicate-key", "checking-stopped"]


CHOICE = "- {type: choice, name: a%d, choices: [{condition: $.x}]}\n"


def test_further_warnings_are_counted() -> None:
    text = HEADER + "".join(CHOICE % number for number in range(150))
    *found, last = parse(text, LIMITS).warnings
    assert [item.id for item in found] == ["choice-without-default"] * DIAGNOSTICS_MAX
    assert (last.id, last.severity, last.message) == ("more-warnings", Severity.WARNING, "there are 50 more warnings")


def test_warnings_hide_no_error() -> None:
    text = HEADER + "".join(CHOICE % number for number in range(150)) + "- {type: pass, name: a1}\n"
    found = diagnostics_of(text)
    assert [item.id for item in found if item.severity is Severity.ERROR] == ["duplicate-name"]
    assert found[-1].message == "there are 51 more warnings"
    assert len(found) == DIAGNOSTICS_MAX + 1


def test_steps_past_the_limit_are_not_read() -> None:
    wanted = "- {type: choice, name: a, choices: [{condition: $.x == 1}]}\n"
    found, work = checked(HEADER + wanted * 3_000, replace(LIMITS, definition_steps_max=5))
    assert (found[-1].id, work.compiled) == ("too-many-steps", 5)


def test_the_number_of_tag_directives_is_limited() -> None:
    def directives(count: int) -> str:
        return (
            "".join(f"%TAG !{number:x}! b\n" for number in range(count)) + f"---\n{HEADER}- {{type: pass, name: a}}\n"
        )

    assert ids_of(directives(TAG_DIRECTIVES_MAX)) == []
    (found,) = diagnostics_of(directives(18_000))
    assert (found.id, found.span.line) == ("tag-not-allowed", TAG_DIRECTIVES_MAX + 1)


def test_a_long_check_pauses_repeatedly() -> None:
    units: list[int] = []
    work = Work(lambda: units.append(work.units))
    parse(
        f"{HEADER}- {{type: pass, name: a, outputMappings: [{{target: t, source: [{'1, ' * 20_000}]}}]}}",
        LIMITS,
        work=work,
    )
    between = [later - earlier for earlier, later in zip([0, *units], units, strict=False)]
    assert len(units) == work.units // PAUSE_UNITS > 100
    assert set(between) == {PAUSE_UNITS}


def test_a_short_check_does_not_pause() -> None:
    units: list[int] = []
    parse(f"{HEADER}- {{type: pass, name: a}}\n", LIMITS, work=Work(lambda: units.append(1)))
    assert units == []


SMALL = replace(LIMITS, definition_bytes_max=2_000, definition_nodes_max=300, definition_characters_max=4_000)

WORDS = st.sampled_from(["a", "b", "$.a", "$input.a", "$.a == 1", "$..", "step", "setp", "type", "pass", "x" * 100])
LEAVES = st.one_of(WORDS, st.integers(0, 99))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(st.sampled_from(["target", "source", "steps", "goto", "condition", "nmae"]), inner, max_size=4),
    ),
    max_leaves=30,
)
KINDS = ["task", "wait", "pass", "choice", "parallel", "foreach", "succeed", "fail", "loop"]
LISTS = ["choices", "branches", "outputMappings", "inputMappings", "retry", "catch", "steps"]


@st.composite
def texts_with_aliases(draw: Any) -> str:
    """Flow-like JSON whose lists repeat anchored values many times."""
    anchored = draw(st.lists(TREES, min_size=1, max_size=4))
    lines = [f"x{number}: &x{number} {json.dumps(value)}" for number, value in enumerate(anchored)]
    aliases = st.sampled_from([f"*x{number}" for number in range(len(anchored))])
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        kind, attribute = draw(st.sampled_from(KINDS)), draw(st.sampled_from(LISTS))
        items = draw(st.lists(aliases, max_size=80))
        steps.append(f"- {{type: {kind}, name: {draw(WORDS)!r}, {attribute}: [{', '.join(items)}]}}")
    return "\n".join([*lines, "version: v1", "type: flow", "steps:", *steps, ""])


@UNTIMED
@given(texts_with_aliases())
def test_no_text_costs_more_than_its_size_allows(text: str) -> None:
    diagnostics, work = checked(text, SMALL)
    assert work.units <= most_units(SMALL)
    assert work.compiled <= len(text)
    assert work.hints <= HINTS_MAX
    assert len(diagnostics) <= DIAGNOSTICS_MAX + 1


def test_a_stored_definition_may_hold_more_text_than_a_new_one() -> None:
    text = options(f"{{condition: '{'$.a || ' * 40}$.a'}}")
    assert ids_of(text) == ["too-much-text"]
    assert len(parse_stored(text).root.steps) == 1
