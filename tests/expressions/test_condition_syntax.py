"""Conditions: their parse trees, and refusals with positions."""

import pytest

from flowserver.expressions.condition_nodes import And, Compare, Literal, Negate, Node, Not, Operator, Or, Select
from flowserver.expressions.condition_parser import CONDITION_CHARACTERS_MAX, NESTING_MAX
from flowserver.expressions.conditions import compile_condition
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.paths import compile_path


def select(text: str) -> Select:
    return Select(compile_path(text))


def equals(left: Node, right: Node) -> Compare:
    return Compare(left, ((Operator.EQUAL, right),))


A, B, C = select("$.a"), select("$.b"), select("$.c")
ONE = Literal(1.0)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("$.a", A),
        (" \t\r\n$.a\n", A),
        ("true", Literal(True)),
        ("false", Literal(False)),
        ("1", ONE),
        ("12.5", Literal(12.5)),
        ('"a\\n\\"b\\""', Literal('a\n"b"')),
        ('`raw \\n "x"`', Literal('raw \\n "x"')),
        ("``", Literal("")),
        ("$", select("$")),
        ('$.a["x]"][0]', select('$.a["x]"][0]')),
        ("$[*].a", select("$[*].a")),
        ("!$.a", Not(A)),
        ("!!$.a", Not(Not(A))),
        ("-1", Negate(ONE)),
        ("- -$.a", Negate(Negate(A))),
        ("$.a==1", equals(A, ONE)),
        ("$.a in $.b", Compare(A, ((Operator.IN, B),))),
        ("$.a < 1 == true", Compare(A, ((Operator.LESS, ONE), (Operator.EQUAL, Literal(True))))),
        ("$.a && $.b && $.c", And((A, B, C))),
        ("$.a || $.b && $.c", Or((A, And((B, C))))),
        ("($.a || $.b) && $.c", And((Or((A, B)), C))),
        ("!$.a == 1", equals(Not(A), ONE)),
        ("!($.a == 1)", Not(equals(A, ONE))),
        ("(($.a))", A),
        ("$.a == 1 && $.b", And((equals(A, ONE), B))),
        ("$.in in $.true", Compare(select("$.in"), ((Operator.IN, select("$.true")),))),
    ],
)
def test_parse_trees_of_conditions(text: str, tree: Node) -> None:
    condition = compile_condition(text)
    assert (condition.text, condition.tree) == (text, tree)


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "a value is expected"),
        ("  ", 2, "a value is expected"),
        ("$.a ==", 6, "a value is expected"),
        ("$.a == == 1", 7, "a value is expected"),
        ("&& $.a", 0, "a value is expected"),
        ("()", 1, "a value is expected"),
        ("$.a $.b", 4, "an operator is expected"),
        ('$.a "x"', 4, "an operator is expected"),
        ("$.a !", 4, "an operator is expected"),
        ("$.a)", 3, "not opened"),
        ("($.a", 0, "not closed"),
        ("(($.a)", 0, "not closed"),
        ("$.a = 1", 4, "did you mean `==`"),
        ("$.a & $.b", 4, "did you mean `&&`"),
        ("$.a | $.b", 4, "did you mean `||`"),
        ("$.a == 'x'", 7, "double quotes or back quotes"),
        ('$.a == "x', 7, "closing quote"),
        ("$.a == `x", 7, "closing quote"),
        ('$.a == "\\q"', 8, "escape"),
        ("$.a + 1", 4, "arithmetic"),
        ("$.a - 1", 4, "arithmetic"),
        ("$.a * 2", 4, "arithmetic"),
        ("$.a-b == 1", 3, 'without a dot: ["a-b"]'),
        ("$.a ? 1 : 2", 4, "unexpected character '?'"),
        ("1.", 0, "not a number"),
        ("1e5", 0, "not a number"),
        ("1_000", 0, "not a number"),
        (".5", 0, "unexpected character '.'"),
        ("٣ == 1", 0, "not a number"),
        ("$.a and $.b", 4, "use `&&`"),
        ("length($.a) == 1", 0, "functions are not supported"),
        ("not $.a", 0, "use `!`"),
        ("$.a == null", 7, "no null"),
        ("$.a == True", 7, "write `true`"),
        ("status == 1", 0, "as `$.status`"),
        ("$input.a == 1", 0, "`$input`"),
        ("1 == $local", 5, "`$local`"),
        ("$..a", 1, "recursive descent"),
        ("1 == $.a[-1]", 9, "negative"),
        ("1 == $.a[0:1]", 10, "slices"),
        ("$.a[?(@.b == 1)]", 4, "filters"),
        ("$.a[0", 5, "not finished"),
        ("$.", 2, "not finished"),
        ("$.5", 2, 'without a dot: ["5"]'),
        ("\x00", 0, "unexpected character '\\x00'"),
    ],
)
def test_refused_conditions_with_positions(text: str, offset: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_condition(text)
    assert message in caught.value.message
    assert caught.value.offset == offset


@pytest.mark.parametrize("opening", ["(", "!", "-", "!("])
def test_nesting_is_limited(opening: str) -> None:
    with pytest.raises(ExpressionError, match="nested deeper"):
        compile_condition(opening * 1_000 + "$.a")


def test_the_deepest_nesting_is_read() -> None:
    assert compile_condition("(" * NESTING_MAX + "$.a" + ")" * NESTING_MAX).tree == A


def test_the_length_of_a_condition_is_limited() -> None:
    assert compile_condition("$.a" + " " * (CONDITION_CHARACTERS_MAX - 3)).tree == A
    with pytest.raises(ExpressionError, match="at most 4096 characters") as caught:
        compile_condition("$.a" + " " * (CONDITION_CHARACTERS_MAX - 2))
    assert caught.value.offset == CONDITION_CHARACTERS_MAX
