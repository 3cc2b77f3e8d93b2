"""Advice in the refusals of paths and conditions: the text that follows it is accepted."""

import ast
import re
from pathlib import Path

import pytest

import flowserver.expressions
from flowserver.expressions.conditions import compile_condition
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.paths import compile_path
from flowserver.expressions.references import compile_source

PATHS = {
    "$.@odata.type": '$["@odata.type"]',
    "$.a-b.c": '$["a-b"].c',
    "$.order.a:b": '$.order["a:b"]',
    "$.a/b[0]": '$["a/b"][0]',
    "$.5": '$["5"]',
    "$.2fa": '$["2fa"]',
    "$.$ref": '$["$ref"]',
    "$.a.*": "$.a[*]",
    "$['a']": '$["a"]',
    "$[a]": '$["a"]',
    "$name": "$.name",
    "$[1234567890]": "$[999999999]",
    "a.b": "$.a.b",
}
CONDITIONS = {
    "$.a-b == 1": '$["a-b"] == 1',
    "$.@odata.count > 1": '$["@odata.count"] > 1',
    "$.a and $.b": "$.a && $.b",
    "$.a or $.b": "$.a || $.b",
    "not $.a": "!$.a",
    "$.a == True": "$.a == true",
    "$.a == False": "$.a == false",
    "$.a == null": "!$.a",
    "$.a == 'x'": '$.a == "x"',
    "$.a = 1": "$.a == 1",
    "$.a & $.b": "$.a && $.b",
    "$.a | $.b": "$.a || $.b",
    "$.a == paid": '$.a == "paid"',
    "paid == true": "$.paid == true",
    "$input.a == 1": "$.a == 1",
    "$.a == 1.": "$.a == 1.0",
}
ADVICE = re.compile(
    r"written in|quoted with|begins with|(?:use|write) `|did you mean|read the|an index is|digits after|null path"
)


def refusal_of(text: str) -> str:
    compile_text = compile_path if text in PATHS else compile_condition
    with pytest.raises(ExpressionError) as refused:
        compile_text(text)
    return refused.value.message


@pytest.mark.parametrize(("text", "followed"), [*PATHS.items(), *CONDITIONS.items()])
def test_text_that_follows_the_advice_is_accepted(text: str, followed: str) -> None:
    message = refusal_of(text)
    assert ADVICE.search(message)
    (compile_path if text in PATHS else compile_condition)(followed)
    if found := re.search(r"without a dot: (\[.*\])$", message):
        assert found[1] in followed


def test_references_get_the_same_advice() -> None:
    with pytest.raises(ExpressionError, match=re.escape('without a dot: ["@odata.x"]')):
        compile_source("$input.@odata.x")
    assert compile_source('$input["@odata.x"]')


def test_each_advice_has_a_case() -> None:
    messages = [refusal_of(text) for text in (*PATHS, *CONDITIONS)]
    untried = [
        text
        for file in Path(flowserver.expressions.__file__).parent.glob("*.py")
        for text in texts_in(ast.parse(file.read_text("utf-8")))
        if ADVICE.search(text) and not any(text in message for message in messages)
    ]
    assert untried == []


def texts_in(tree: ast.Module) -> list[str]:
    """The texts of a module that are no docstrings."""
    docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    found = (each for each in ast.walk(tree) if isinstance(each, ast.Constant) and id(each) not in docs)
    return [each.value for each in found if isinstance(each.value, str)]
