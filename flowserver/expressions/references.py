"""Sources of mappings: a reference into `$input`, `$local` or `$context`, or a constant.

The rule is the language's own: a string that begins with one of the three roots is a reference, any other
value is a constant and is copied as it is. Nothing inside a constant is ever expanded.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from flowserver.base.json_values import Json
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.fuel import Fuel
from flowserver.expressions.paths import Missing, Path, compile_path, find


class Root(StrEnum):
    """The object that a reference starts from."""

    INPUT = "input"
    LOCAL = "local"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Constant:
    """A value used as it is; any JSON value, so a constant cannot always be hashed."""

    value: Json


@dataclass(frozen=True, slots=True)
class Reference:
    """A path into one of the roots; `path.text` begins with `$`, the root's name left out."""

    root: Root
    path: Path


Source = Constant | Reference

_REFERENCE = re.compile(r"\$(input|local|context)(?=[.\[]|\Z)")


def compile_source(value: Json) -> Source:
    """Compile the `source` of a mapping; raises ExpressionError if it is a reference with a bad path.

    `$inputs` and `$.a` are constants: a root is followed by the end, a dot or a bracket.
    """
    found = _REFERENCE.match(value) if isinstance(value, str) else None
    if found is None:
        return Constant(value)
    try:
        return Reference(Root(found[1]), compile_path("$" + value[found.end() :]))
    except ExpressionError as error:
        raise error.shifted(len(found[1])) from None


def resolve(source: Source, *, input: Json, local: Json, context: Json, fuel: Fuel | None = None) -> Json | Missing:
    """The value of a source, or MISSING if its path selects nothing. The caller decides what MISSING means.

    What `[*]` selects is counted on `fuel`, if given: raises OutOfFuel.
    """
    if isinstance(source, Constant):
        return source.value
    if source.root is Root.INPUT:
        return find(source.path, input, fuel)
    return find(source.path, local if source.root is Root.LOCAL else context, fuel)
