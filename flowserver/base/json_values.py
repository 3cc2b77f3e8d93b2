"""JSON in and out, exactly.

Integers keep every digit (Python integers are unbounded); NaN and infinities are refused because JSON has no
such values; text that is not valid Unicode is refused because it could not be stored. msgspec does the work: it is
the one fast library that keeps long integers exact.
"""

import json
from typing import Any, NoReturn

import msgspec

from flowserver.base.utf8_texts import BYTE_ORDER_MARK, NotUtf8, utf8_text

Json = Any
"""A JSON value as Python sees it: None, bool, int, float, str, list[Json] or dict[str, Json]."""

JsonObject = dict[str, Any]

DEPTH_MAX = 200
"""Deepest nesting accepted in a JSON text; deeper documents are refused before they can exhaust a stack."""

LEVELS_MAX = DEPTH_MAX + 1
"""The levels of such a document, counted with its own."""


class InvalidJson(ValueError):
    """The text is not the JSON that was asked for; the message says where and why."""


_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


def load_json(content: str | bytes, depth_max: int = DEPTH_MAX) -> Json:
    """Parse a JSON text, or one in UTF-8; a byte order mark before it is skipped.

    Raises InvalidJson with what is wrong and where.
    """
    try:
        text = utf8_text(content) if isinstance(content, bytes) else content.removeprefix(BYTE_ORDER_MARK)
    except NotUtf8 as error:
        raise InvalidJson(str(error)) from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise InvalidJson(f"nested deeper than {depth_max} levels") from None
    except UnicodeEncodeError:
        raise InvalidJson("holds a lone surrogate, which is not valid Unicode") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidJson(_explain(text, error)) from None
    if text.count("{") + text.count("[") > depth_max and depth_exceeds(value, depth_max):
        raise InvalidJson(f"nested deeper than {depth_max} levels")
    return value


def _explain(text: str, error: Exception) -> str:
    """The mistake in the words of the standard library, which names line and column."""
    try:
        value = _EXPLAINER.decode(text)
    except json.JSONDecodeError as located:
        return f"{located.msg} at line {located.lineno} column {located.colno}"
    except (ValueError, RecursionError) as other:
        return str(other)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "holds a lone surrogate, which is not valid Unicode"
    return str(error)


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not a JSON value")


_EXPLAINER = json.JSONDecoder(parse_constant=_refuse_constant)


def load_json_object(content: str | bytes) -> JsonObject:
    """Parse a JSON text that must hold an object, as `load_json` does; raises InvalidJson."""
    value = load_json(content)
    if not isinstance(value, dict):
        raise InvalidJson("not a JSON object")
    return value


def load_stored_json(text: str) -> Json:
    """Parse what `dump_json` once wrote from checked values; raises InvalidJson for a damaged text."""
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidJson(str(error)) from None


def dump_json(value: Json) -> str:
    """Compact JSON text; non-ASCII characters stay as they are."""
    return _ENCODER.encode(value).decode()


def raw_json(text: str) -> Json:
    """A valid JSON text, which is dumped as it is."""
    return msgspec.Raw(text.encode())


def dump_json_bytes(value: Json) -> bytes:
    """The UTF-8 bytes of `dump_json`."""
    return _ENCODER.encode(value)


def json_bytes(value: Json) -> int:
    """Size of a value as every size limit counts it: bytes of its compact UTF-8 JSON text."""
    return len(_ENCODER.encode(value))


def text_bytes(text: str) -> int:
    """Size of a JSON text in UTF-8. Costs nothing if it is ASCII. Lone surrogates, as in damaged rows, count too."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def depth_exceeds(value: Json, depth_max: int) -> bool:
    """Whether lists and objects nest deeper than `depth_max` below the value itself."""
    return depth_of(value, depth_max + 2) > depth_max + 1


def depth_of(value: Json, stop: int) -> int:
    """How many levels of lists and objects the value has, itself included; at most `stop`, where counting ends.

    Walks level by level, never recursively.
    """
    level = [value]
    for depth in range(stop):
        containers = [item for item in level if isinstance(item, (dict, list))]
        if not containers:
            return depth
        level = []
        for item in containers:
            level.extend(item.values() if isinstance(item, dict) else item)
    return stop
