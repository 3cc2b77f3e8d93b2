"""Sources of mappings: the texts that are references, and their values."""

from typing import Any

import pytest

from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.paths import MISSING, compile_path
from flowserver.expressions.references import Constant, Reference, Root, compile_source, resolve


@pytest.mark.parametrize(
    ("text", "root", "path"),
    [
        ("$input", Root.INPUT, "$"),
        ("$local.a.b", Root.LOCAL, "$.a.b"),
        ("$context.task.token", Root.CONTEXT, "$.task.token"),
        ("$local[*].r", Root.LOCAL, "$[*].r"),
        ('$input["a-b"]', Root.INPUT, '$["a-b"]'),
    ],
)
def test_references(text: str, root: Root, path: str) -> None:
    assert compile_source(text) == Reference(root, compile_path(path))


NOT_REFERENCES = ["", "plain", "$", "$.a", "$inputs", "$inputs.a", "$input-a", "$Input", " $input", "$input\n"]


@pytest.mark.parametrize("value", [*NOT_REFERENCES, 0, -1, 1.5, True, None, [], {}, ["$input.a"], {"a": "$local"}])
def test_anything_else_is_a_constant(value: Any) -> None:
    assert compile_source(value) == Constant(value)


@pytest.mark.parametrize(
    ("text", "offset"), [("$input.", 7), ("$local..a", 6), ("$context[-1]", 9), ("$local[*", 8), ("$input.a ", 8)]
)
def test_bad_references_have_a_position(text: str, offset: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_source(text)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("$input.a", 1),
        ("$local.a", 2),
        ("$context.a", 3),
        ("$local", {"a": 2}),
        ("$local.b", MISSING),
        ("text", "text"),
        ([1, {"a": "$local"}], [1, {"a": "$local"}]),
    ],
)
def test_resolving(source: Any, value: Any) -> None:
    assert resolve(compile_source(source), input={"a": 1}, local={"a": 2}, context={"a": 3}) == value
