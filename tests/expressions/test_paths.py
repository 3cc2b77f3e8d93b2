"""Paths: syntax, refusals with positions, and results."""

from typing import Any

import pytest

from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.paths import EVERY, MISSING, PATH_CHARACTERS_MAX, compile_path, find


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b_1", ("a", "b_1")),
        ("$[0]", (0,)),
        ("$.a[10].b", ("a", 10, "b")),
        ('$["k"]', ("k",)),
        ('$["a-b"].c', ("a-b", "c")),
        ('$.a["b"][0]', ("a", "b", 0)),
        ('$["say \\"hi\\"\\n\\u4e2d"]', ('say "hi"\n中',)),
        ('$["tab\there"]', ("tab\there",)),
        ('$["*"]', ("*",)),
        ('$["0"]', ("0",)),
        ('$[""]', ("",)),
        ('$["a.b"]', ("a.b",)),
        ("$.where.wherenot", ("where", "wherenot")),
        ("$.été.名字", ("été", "名字")),
        ("$[*]", (EVERY,)),
        ("$.a[*].b[*]", ("a", EVERY, "b", EVERY)),
    ],
)
def test_the_printed_form_of_paths(text: str, segments: tuple[Any, ...]) -> None:
    path = compile_path(text)
    assert (path.text, path.segments, path.is_root) == (text, segments, text == "$")


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "begins with `$`"),
        ("a", 0, "begins with `$`"),
        ("$input.a", 1, "`$` alone"),
        ("$a", 1, "`$` alone"),
        ("$$", 1, "unexpected here"),
        ("$.", 2, "not finished"),
        ("$[", 2, "not finished"),
        ("$.a[0", 5, "not finished"),
        ("$.a]", 3, "unexpected here"),
        ('$.a["b"]-c', 8, "unexpected character '-'"),
        ("$[]", 2, "unexpected here"),
        ("$[[0]]", 2, "unexpected here"),
        ("$[0]b", 4, "unexpected here"),
        ("$..a", 1, "recursive descent"),
        ("$.a..", 3, "recursive descent"),
        ("$.*", 2, "without a dot: [*]"),
        ("$.5", 2, 'without a dot: ["5"]'),
        ('$."a"', 2, "a key is expected"),
        ("$.$", 2, 'without a dot: ["$"]'),
        ("$.[0]", 2, "a key is expected"),
        ("$[a]", 2, "double quotes"),
        ("$['a']", 2, "double quotes"),
        ("$[-1]", 2, "negative"),
        ("$.a-b", 3, 'without a dot: ["a-b"]'),
        ("$[0:1]", 3, "slices"),
        ("$[0,1]", 3, "only one"),
        ("$[?(@.a)]", 2, "filters"),
        ("$[(@.length)]", 2, "scripts"),
        ("$[@]", 2, "filters"),
        ("$.a|$.b", 3, "unexpected character '|'"),
        ("$. a", 2, "blanks"),
        ("$.a ", 3, "blanks"),
        ('$["a', 2, "closing quote"),
        ('$["a\\q"]', 4, "escape"),
        ("$[1234567890]", 2, "from 0 to 999999999"),
        ("$[٣]", 2, "from 0 to 999999999"),
        ("$" + ".a" * PATH_CHARACTERS_MAX, PATH_CHARACTERS_MAX, "at most"),
    ],
)
def test_refused_paths_with_positions(text: str, offset: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_path(text)
    assert message in caught.value.message
    assert caught.value.offset == offset


ROWS = {"rows": [{"id": 1, "tags": ["x", "y"]}, {"id": None}, {"tags": ["z"]}, 7]}


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("$", {"a": 1}, {"a": 1}),
        ("$", None, None),
        ("$.a.b", {"a": {"b": 2}}, 2),
        ("$.a", {"a": None}, None),
        ("$.a", {}, MISSING),
        ("$.a.b", {"a": 1}, MISSING),
        ("$.a", [1], MISSING),
        ("$[0]", [5], 5),
        ("$[1]", [5], MISSING),
        ("$[0]", {"0": 5}, MISSING),
        ("$[0]", "text", MISSING),
        ('$["0"]', {"0": 5}, 5),
        ("$.rows[*].id", ROWS, [1, None]),
        ("$.rows[*].tags", ROWS, [["x", "y"], ["z"]]),
        ("$.rows[*].tags[*]", ROWS, ["x", "y", "z"]),
        ("$.rows[*].tags[1]", ROWS, ["y"]),
        ("$.rows[*].none", ROWS, []),
        ("$[*]", [], []),
        ("$[*]", [1, [2]], [1, [2]]),
        ("$[*][*]", [1, [2], [3, 4]], [2, 3, 4]),
        ("$[*]", {"a": 1}, MISSING),
        ("$.a[*]", {}, MISSING),
        ("$.a[*].b", {"a": 1}, MISSING),
    ],
)
def test_results_of_paths(text: str, value: Any, found: Any) -> None:
    assert find(compile_path(text), value) == found
