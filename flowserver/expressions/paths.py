"""Paths into JSON values: `$`, `$.a.b`, `$.a[0]`, `$["k"]`, `$.a[*].b`.

jsonpath-ng's grammar parses the text; its tree is flattened into segments that a plain loop walks, because
the library's own search is far slower and does more than the language allows.
The published pages and sample flows use this subset.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from threading import Lock
from typing import Any, Final, Literal

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.jsonpath import Child, Fields, Index, JSONPath
from jsonpath_ng.parser import JsonPathParser

from flowserver.base.json_values import Json
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.fuel import Fuel
from flowserver.expressions.path_tokens import Token, path_tokens

PATH_CHARACTERS_MAX: Final = 4_096
"""Longest path text; JSON data cannot nest deep enough to need more, and compiled paths are cached."""


class Missing(Enum):
    """The type of `MISSING`, which is no JSON value and never equal to one."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""What a path that selects nothing finds. A JSON `null` that is present is not missing."""


class Every(Enum):
    """The type of `EVERY`, the segment `[*]`."""

    EVERY = "*"


EVERY: Final = Every.EVERY

Segment = str | int | Literal[Every.EVERY]
"""A key, an index, or `[*]`."""


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path; `text` begins with `$`."""

    text: str
    segments: tuple[Segment, ...]

    @property
    def is_root(self) -> bool:
        """Whether this is the bare `$`, the whole value."""
        return not self.segments


def find(path: Path, value: Json, fuel: Fuel | None = None) -> Json | Missing:
    """What `path` selects in `value`, or MISSING.

    An index out of range, a key of something that is no object, and `[*]` of something that is no list are
    missing. With `[*]` the result is one flat list; elements that lack the rest of the path are skipped.
    Every element that a `[*]` selects is counted on `fuel`, if given: raises OutOfFuel. One path never counts
    more elements than `value` has.
    """
    for position, segment in enumerate(path.segments):
        if segment is EVERY:
            return _find_each(path.segments[position:], value, fuel)
        value = _step(segment, value)
        if value is MISSING:
            return MISSING
    return value


def _step(segment: str | int, value: Json) -> Json | Missing:
    if isinstance(segment, str):
        return value.get(segment, MISSING) if isinstance(value, dict) else MISSING
    if isinstance(value, list) and segment < len(value):
        return value[segment]
    return MISSING


def _find_each(segments: tuple[Segment, ...], value: Json, fuel: Fuel | None) -> list[Json] | Missing:
    if not isinstance(value, list):
        return MISSING
    found: list[Json] = [value]
    for segment in segments:
        if segment is EVERY:
            found = [element for item in found if isinstance(item, list) for element in item]
            if fuel is not None:
                fuel.spend(len(found))
        else:
            found = [part for item in found if (part := _step(segment, item)) is not MISSING]
    return found


@lru_cache(maxsize=4096)
def compile_path(text: str) -> Path:
    """Compile a path that begins with `$`; raises ExpressionError with the place of the mistake."""
    if not text.startswith("$"):
        raise ExpressionError("a path begins with `$`", 0)
    if len(text) > PATH_CHARACTERS_MAX:
        raise ExpressionError(f"a path has at most {PATH_CHARACTERS_MAX} characters", PATH_CHARACTERS_MAX)
    tree = _parse(text)
    segments: list[Segment] = []
    while isinstance(tree, Child):
        segments.append(_segment(tree.right))
        tree = tree.left
    return Path(text, tuple(reversed(segments)))


def _segment(node: JSONPath) -> Segment:
    if isinstance(node, Fields):
        return str(node.fields[0])
    if isinstance(node, Index):
        return int(node.indices[0])
    return EVERY


_PARSER: Any = JsonPathParser()  # Any: it wants its own class of tokens, but only reads their attributes
_PARSER_LOCK = Lock()  # the library's parser keeps its stacks as attributes; making one costs more than a parse


def _parse(text: str) -> JSONPath:
    stream = _Stream(text)
    try:
        with _PARSER_LOCK:
            tree: JSONPath = _PARSER.parse_token_stream(stream.tokens())
    except JSONPathError:
        message = "unexpected here in a path" if stream.offset < len(text) else "the path is not finished"
        raise ExpressionError(message, stream.offset) from None
    return tree


class _Stream:
    """Hands tokens to the library's parser and remembers the place, which the library's errors do not carry."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.offset = 0

    def tokens(self) -> Iterator[Token]:
        for token in path_tokens(self._text):
            self.offset = token.lexpos
            yield token
        self.offset = len(self._text)
