"""The meaning of conditions: one row per rule. A row is a condition, the input, and whether it holds."""

from typing import Any

import pytest

from flowserver.expressions.conditions import CONDITION_VALUES_MAX, compile_condition, holds, paths_in
from flowserver.expressions.fuel import Fuel
from tests.conformance.cases import ConditionCase, condition_cases

BIG = 10**400
DEEP: list[Any] = []
for _ in range(50_000):
    DEEP = [DEEP]

COMPARISONS = [
    ("$.a == 1", {"a": 1.0}, True),
    ("$.a == 1", {"a": 2}, False),
    ("$.a != 1", {"a": 2}, True),
    ("$.a < 2", {"a": 1}, True),
    ("$.a <= 1", {"a": 1}, True),
    ("$.a > 1", {"a": 1}, False),
    ("$.a >= 1", {"a": 1}, True),
    ("$.a < $.b", {"a": 1, "b": 2}, True),
    ("$.a == -1", {"a": -1}, True),
    ("$.a == 9007199254740992", {"a": 9007199254740993}, True),  # both are the same double
    ("$.a > 1", {"a": BIG}, True),
    ("$.a < 1", {"a": -BIG}, True),
    ('$.a == "x"', {"a": "x"}, True),
    ("$.a == `x`", {"a": "x"}, True),
    ('$.a < "b"', {"a": "a"}, True),
    ('$.a < "9"', {"a": "10"}, True),  # texts, so by bytes
    ('$.a > "Z"', {"a": "a"}, True),
    ("$.a > `\N{HALFWIDTH KATAKANA LETTER A}`", {"a": "\N{GRINNING FACE}"}, True),  # UTF-8 order, not UTF-16
    ("$.a == true", {"a": True}, True),
    ("$.a == false", {"a": True}, False),
    ("$.a < true", {"a": False}, False),  # booleans have no order
]
CONVERSIONS = [
    ("$.a == 1", {"a": "1"}, True),
    ('$.a == "1.50"', {"a": 1.5}, True),
    ("$.a > 9", {"a": "10"}, True),
    ("$.a < 0", {"a": "-1e3"}, True),
    ("$.a == 1", {"a": "+1."}, True),
    ("$.a == 0.5", {"a": ".5"}, True),
    ("$.a == 1", {"a": " 1"}, False),
    ("$.a == 1", {"a": ""}, False),
    ("$.a > 1", {"a": "inf"}, False),
    ("$.a > 1", {"a": "1e999"}, True),
    ("$.a == 1", {"a": "1_0"}, False),
    ("$.a == 3", {"a": "٣"}, False),
    ('$.a == "true"', {"a": True}, True),
    ("$.a == true", {"a": "true"}, True),
    ("$.a == false", {"a": "false"}, True),
    ("$.a == true", {"a": "TRUE"}, False),
    ("$.a != true", {"a": "yes"}, True),
]
MIXTURES = [
    ("$.a == 1", {"a": True}, False),
    ("$.a != 1", {"a": True}, True),
    ("$.a == 0", {"a": False}, False),
    ("$.a == 1", {"a": "x"}, False),
    ("$.a != 1", {"a": "x"}, True),
    ("$.a < 1", {"a": "x"}, False),
    ("$.a >= 1", {"a": "x"}, False),
    ("$.a == 1", {"a": [1]}, False),
    ("$.a != 1", {"a": {}}, True),
    ("$.a < $.b", {"a": [1], "b": [2]}, False),
    ("$.a == $.b", {"a": [], "b": {}}, False),
    ('$.a == "{}"', {"a": {}}, False),
]
WHOLE_VALUES = [
    ("$.a == $.b", {"a": [1, {"k": "v"}], "b": [1.0, {"k": "v"}]}, True),
    ("$.a == $.b", {"a": [1], "b": [True]}, False),
    ("$.a == $.b", {"a": ["1"], "b": [1]}, False),  # nested values are not converted
    ("$.a == $.b", {"a": [1], "b": [1, 2]}, False),
    ("$.a == $.b", {"a": {"x": 1}, "b": {"y": 1}}, False),
    ("$.a == $.b", {"a": {"x": 1, "y": None}, "b": {"y": None, "x": 1}}, True),
    ("$.a != $.b", {"a": {"x": 1}, "b": {"x": 2}}, True),
    ("$.a == $.b", {"a": DEEP, "b": [DEEP[0]]}, True),
]
MISSING_VALUES = [
    *[(f"$.a {operator} 1", value, False) for operator in ("==", "<", "<=", ">", ">=") for value in ({}, {"a": None})],
    ("$.a != 1", {}, True),
    ("$.a != 1", {"a": None}, True),
    ("1 != $.a", {}, True),
    ("$.a == $.b", {}, False),
    ("$.a != $.b", {}, True),
    ("$.a == $.b", {"a": None, "b": None}, False),
    ("$.a", {}, False),
    ("!$.a", {}, True),
    ("$.a in $.b", {"a": 1}, False),
    ("$.a in $.b", {"b": [None]}, False),
    ("$.a.b.c == 1", {"a": [{"b": 1}]}, False),
]
TRUTHS = [
    ("true", None, True),
    ("false", None, False),
    ("$.a", {"a": True}, True),
    ("$.a", {"a": False}, False),
    ("$.a", {"a": 0}, False),
    ("$.a", {"a": 0.1}, True),
    ("$.a", {"a": -1}, True),
    ("$.a", {"a": "true"}, True),
    ("$.a", {"a": "false"}, False),
    ("$.a", {"a": "1"}, False),
    ("$.a", {"a": "yes"}, False),
    ("$.a", {"a": [1]}, False),
    ("$.a", {"a": {"b": 1}}, False),
    ("$.a", {"a": None}, False),
    ("$", {"a": True}, False),
    ("!$.a", {"a": 0}, True),
    ("!$.a", {"a": "true"}, False),
]
LOGIC = [
    ("$.a && $.b", {"a": 1, "b": "true"}, True),
    ("$.a && $.b", {"a": 1, "b": "x"}, False),
    ("$.a || $.b", {"a": 0, "b": 1}, True),
    ("$.a || $.b", {}, False),
    ("true || $.gone == 1 && false", {}, True),
    ("(true || true) && false", {}, False),
    ("!true || true", {}, True),
    ("1 < 2 == true", {}, True),
    ("3 > 2 > 1", {}, False),  # (3 > 2) > 1 compares a boolean with a number
]
NEGATIONS = [
    ("-$.a < 0", {"a": 2}, True),
    ("-$.a == -2", {"a": "2"}, True),
    ("-$.a == 0", {"a": "x"}, False),
    ("-$.a != 0", {"a": True}, True),
    ("--$.a == 2", {"a": 2}, True),
]
CONTAINMENTS = [
    ("10 in $.l", {"l": [1, 10]}, True),
    ('"10" in $.l', {"l": [10]}, True),  # as ==
    ("11 in $.l", {"l": [10]}, False),
    ("$.x in $.l", {"x": {"a": 1}, "l": [{"a": 1}]}, True),
    ('"b" in $.l[*].k', {"l": [{"k": "a"}, {"k": "b"}]}, True),
    ('"k" in $', {"k": None}, True),
    ('"v" in $', {"k": "v"}, False),
    ('1 in $', {"1": 0}, False),
    ('"a" in $.s', {"s": "abc"}, False),
    ("!(1 in $.l)", {"l": [2]}, True),
]  # fmt: skip


PLAIN = [*COMPARISONS, *MIXTURES, *WHOLE_VALUES, *TRUTHS, *LOGIC, *NEGATIONS, *CONTAINMENTS]


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [*PLAIN, *CONVERSIONS, *MISSING_VALUES],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_meaning(text: str, value: Any, expected: bool) -> None:
    assert holds(compile_condition(text), value) is expected


@pytest.mark.parametrize("case", condition_cases(), ids=str)
def test_conformance(case: ConditionCase) -> None:
    assert holds(compile_condition(case.condition), case.input) is case.taken


def test_long_chains_need_no_stack() -> None:
    text = " && ".join(["$.a == 1 == true"] * 200)
    assert holds(compile_condition(text), {"a": 1})


# Fuel: a condition that compares too much is false

MANY = [0] * (CONDITION_VALUES_MAX // 2)
LONG = "1" * 240_000


@pytest.mark.parametrize(
    ("once", "value"),
    [
        ("$.a == $.b", {"a": MANY, "b": [*MANY]}),
        (
            "$.a == $.b",
            {"a": {str(key): 0 for key in range(len(MANY))}, "b": {str(key): 0 for key in range(len(MANY))}},
        ),
        ("!(1 in $.a)", {"a": MANY}),
        ("!$.a[*].gone", {"a": MANY}),
        ("!(0 in $.a[*])", {"a": [1] * (len(MANY) // 2)}),
    ],
)
def test_a_condition_that_compares_too_much_is_false(once: str, value: Any) -> None:
    assert holds(compile_condition(once), value)
    fuel = Fuel(CONDITION_VALUES_MAX)
    assert not holds(compile_condition(f"{once} && {once} && {once}"), value, fuel)
    assert fuel.is_spent


def test_a_long_text_compared_with_each_element_counts_by_its_length() -> None:
    fuel = Fuel(CONDITION_VALUES_MAX)
    assert not holds(compile_condition("!($.text in $.list)"), {"text": LONG, "list": MANY}, fuel)
    assert fuel.is_spent


def test_exhausted_fuel_stays_exhausted() -> None:
    fuel = Fuel(3)
    assert holds(compile_condition("true && true"), {}, fuel)
    assert (fuel.used, fuel.is_spent) == (3, False)
    assert not holds(compile_condition("true"), {}, fuel)
    assert fuel.is_spent


def test_the_paths_that_a_condition_reads() -> None:
    condition = compile_condition('!($.a == 1 || -$.b[0] < $.c) && "x" in $.d && true && $')
    assert [path.text for path in paths_in(condition)] == ["$.a", "$.b[0]", "$.c", "$.d", "$"]
