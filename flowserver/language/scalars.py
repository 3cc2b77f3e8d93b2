"""What a plain YAML scalar means: the core schema of YAML 1.2 (section 10.3.2), and nothing more.

So `yes`, `on` and timestamps are texts, `010` is ten, `0o17` and `0x1f` are integers.
"""

import re
from math import isinf
from typing import Final

NUMBER_CHARACTERS_MAX: Final = 1_000
"""Longest number; integers are exact, and longer ones cost more than anybody needs them."""

_CONSTANTS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def plain_value(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar; raises ValueError for a number that JSON cannot hold or that is too long."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("numbers must be finite")
    value = _number(text)
    if isinstance(value, float) and isinf(value):
        raise ValueError("this number is too large for a double")
    return value


def _number(text: str) -> str | int | float:
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return int(_checked(text), base)
    return float(_checked(text)) if _FLOAT.fullmatch(text) else text


def _checked(text: str) -> str:
    if len(text) > NUMBER_CHARACTERS_MAX:
        raise ValueError(f"numbers have at most {NUMBER_CHARACTERS_MAX} characters")
    return text
