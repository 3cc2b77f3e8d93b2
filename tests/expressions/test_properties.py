"""Properties of expressions: any text is compiled or refused, and evaluation is total."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flowserver.expressions.condition_nodes import Node
from flowserver.expressions.conditions import compile_condition, holds
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.paths import MISSING, Path, compile_path, find
from flowserver.expressions.references import Constant, compile_source
from tests.expressions.strategies import JSON_VALUES, PATHS, TREES, print_condition

UNTIMED = settings(deadline=None)  # a busy machine is not a failure

WORDS = ["..", "&&", "||", "==", ">=", "in", "12.5", "1e5", "true", "null", "$input", "\n", "\x00", "\ud800", '["k"]']
PIECES = st.sampled_from([*"$.[]*\"`'\\()!-&=<?:,@ aé0", *WORDS])
ANY_TEXT = st.one_of(st.text(), st.text(st.characters()), st.lists(PIECES, max_size=12).map("".join))


@UNTIMED
@given(ANY_TEXT)
def test_any_text_is_a_condition_or_refused_within_the_text(text: str) -> None:
    try:
        condition = compile_condition(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)
    else:
        assert holds(condition, {"a": 1}) in (True, False)


@UNTIMED
@given(st.one_of(ANY_TEXT, ANY_TEXT.map("$".__add__)))
def test_any_text_is_a_path_or_refused_within_the_text(text: str) -> None:
    try:
        path = compile_path(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)
    else:
        assert path.text == text


@UNTIMED
@given(st.one_of(ANY_TEXT, ANY_TEXT.map("$input".__add__)))
def test_any_text_is_a_source_or_refused_within_the_text(text: str) -> None:
    try:
        source = compile_source(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)
    else:
        assert not isinstance(source, Constant) or source.value == text


@UNTIMED
@given(TREES)
def test_a_printed_condition_is_parsed_as_before(tree: Node) -> None:
    assert compile_condition(print_condition(tree)).tree == tree


@UNTIMED
@given(TREES, JSON_VALUES)
def test_conditions_are_true_or_false(tree: Node, value: Any) -> None:
    assert holds(compile_condition(print_condition(tree)), value) in (True, False)


@UNTIMED
@given(JSON_VALUES, JSON_VALUES)
def test_unequal_is_not_equal(left: Any, right: Any) -> None:
    value = {"l": left, "r": right}
    equal = holds(compile_condition("$.l == $.r"), value)
    assert equal is holds(compile_condition("$.r == $.l"), value)
    assert equal is not holds(compile_condition("$.l != $.r"), value)


@UNTIMED
@given(PATHS)
def test_a_printed_path_is_parsed_as_before(path: Path) -> None:
    assert compile_path(path.text) == path


@UNTIMED
@given(PATHS, JSON_VALUES)
def test_results_are_json_and_part_of_the_value(path: Path, value: Any) -> None:
    found = find(path, value)
    if found is not MISSING:
        assert json.loads(json.dumps(found)) == found
