"""JSON in and out, exactly.

Integers keep every digit (Python integers are unbounded); NaN and infinities are refused because JSON has no
such values; text that is not valid Unicode is refused because it could not be stored.
"""

import json
from typing import Any, NoReturn

Json = Any
"""A JSON value as Python sees it: None, bool, int, float, str, list[Json] or dict[str, Json]."""

JsonObject = dict[str, Any]

DEPTH_MAX = 200
"""Deepest nesting accepted in a JSON text; deeper documents are refused before they can exhaust a stack."""


class InvalidJson(ValueError):
    """The text is not the JSON that was asked for; the message says where and why."""


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not a JSON value")


def _parse_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise InvalidJson(f"the number {text[:40]} is out of range")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_float)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def load_json(text: str, depth_max: int = DEPTH_MAX) -> Json:
    """Parse a JSON text; raises InvalidJson with the position of the mistake, or if it nests too deep."""
    try:
        value = _DECODER.decode(text)
    except InvalidJson:
        raise
    except RecursionError:
        raise InvalidJson(f"nested deeper than {depth_max} levels") from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except ValueError as error:  # integers of more digits than the interpreter converts
        raise InvalidJson(str(error)) from None
    if depth_exceeds(value, depth_max):
        raise InvalidJson(f"nested deeper than {depth_max} levels")
    return value


def load_json_object(text: str) -> JsonObject:
    """Parse a JSON text that must hold an object; raises InvalidJson."""
    value = load_json(text)
    if not isinstance(value, dict):
        raise InvalidJson("not a JSON object")
    if not is_valid_unicode(text):
        raise InvalidJson("holds a lone surrogate, which is not valid Unicode")
    return value


def dump_json(value: Json) -> str:
    """Compact JSON text; non-ASCII characters stay as they are."""
    return _ENCODER.encode(value)


def json_bytes(value: Json) -> int:
    """Size of a value as every size limit counts it: bytes of its compact UTF-8 JSON text."""
    return len(dump_json(value).encode("utf-8", "surrogatepass"))


def is_valid_unicode(text: str) -> bool:
    """False if the text holds a lone surrogate (also as a `\\ud800` escape in JSON), which UTF-8 cannot write."""
    try:
        text.encode("utf-8")
        if "\\u" in text:
            dump_json(_DECODER.decode(text)).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def depth_exceeds(value: Json, depth_max: int) -> bool:
    """Whether lists and objects nest deeper than `depth_max`; walks level by level, never recursively."""
    level = [value]
    for _ in range(depth_max + 1):
        deeper: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
        level = [item for item in deeper if isinstance(item, (dict, list))]
        if not level:
            return False
    return True
