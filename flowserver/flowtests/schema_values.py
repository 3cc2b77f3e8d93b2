"""Values that fit a JSON Schema, for inputs of simulated executions; those at its bounds more often than others.

Not every keyword can be turned round. The others are refused when the file is read, and so is a schema for which
no value is found: a simulation must not leave out inputs that the schema means.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from flowserver.base.clock import format_instant
from flowserver.base.json_values import Json, JsonObject
from flowserver.flowtests.choices import Choices
from flowserver.flowtests.schemas import Schema

LEVELS_MAX: Final = 12
"""A schema that refers to itself is followed so deep; what is optional is left out below."""
VALUES_MAX: Final = 300
"""Of one object; after so many, what is optional is left out."""
UNITS_MAX: Final = 100_000
"""Of one object: its values, and UNIT_CHARACTERS of their texts each. None is made if a schema needs more."""
UNIT_CHARACTERS: Final = 100
SIZE_MAX: Final = 100_000
"""Of `minItems` and `minLength`."""
OPTIONAL_SHARE: Final = 0.7
"""How often drawn objects have a member that is not required."""
NUMBERS: Final = (1, 0, -1, 2, 1_000_000)
TEXTS: Final = ("text", "", "a b", "Ünïcode \N{SNOWMAN}")
TEXT_CHARACTERS_MAX: Final = 1_000
INSTANTS: Final = tuple(format_instant(ms) for ms in (1_767_225_600_000, 0, 4_102_444_799_999))

_NOTES: Final = ("$schema", "$id", "$comment", "title", "description", "default", "deprecated", "readOnly", "writeOnly")
_KEYWORDS: Final = frozenset(
    (
        *_NOTES, "type", "enum", "const", "examples", "$ref", "$defs", "definitions", "anyOf", "oneOf", "properties",
        "required", "additionalProperties", "items", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "format",
    )
)  # fmt: skip
FORMATS: Final = {"date-time": INSTANTS, "date": ("2026-01-01", "2024-02-29"), "email": ("ann@example.com",)}
_REFERENCE: Final = "#/"

Path = tuple[str | int, ...]


def unusable_parts(document: JsonObject) -> Iterator[tuple[str, Path]]:
    """Why no values can be made for parts of a schema, each with the path that leads to it."""
    schemas = list(_schemas_in(document, ()))
    known = {id(schema) for schema, _ in schemas}
    for schema, path in schemas:
        for keyword, value in schema.items():
            if why := _unusable(document, known, keyword, value):
                yield why, (*path, keyword)


def _schemas_in(schema: Any, path: Path) -> Iterator[tuple[JsonObject, Path]]:
    """The schema and those in it."""
    if not isinstance(schema, dict):
        return
    yield schema, path
    for keyword, value in schema.items():
        inner: Iterable[tuple[str | int, Any]] = ()
        if keyword in ("anyOf", "oneOf"):
            inner = enumerate(value)
        elif keyword in ("properties", "$defs", "definitions"):
            inner = value.items()
        elif keyword == "items":
            yield from _schemas_in(value, (*path, keyword))
        for key, each in inner:
            yield from _schemas_in(each, (*path, keyword, key))


def _unusable(root: JsonObject, schemas: set[int], keyword: str, value: Any) -> str | None:
    """Why no values can be made by a keyword; `schemas` are those of the document, by identity."""
    if keyword not in _KEYWORDS:
        return f"values cannot be made by `{keyword}`"
    if keyword == "format" and value not in FORMATS:
        return f"values can be made for the formats {', '.join(FORMATS)} only"
    if keyword in ("minItems", "minLength") and value > SIZE_MAX:
        return f"values are made with a `{keyword}` of at most {SIZE_MAX}"
    if keyword == "$ref" and id(_referred(root, value)) not in schemas:
        return "`$ref` leads to no schema in this one"
    if keyword == "additionalProperties" and not isinstance(value, bool):
        return "`additionalProperties` can be true or false; no values are made for it"
    return None


def _referred(root: JsonObject, reference: str) -> Any:
    found: Any = root
    if not reference.startswith(_REFERENCE):
        return root if reference == "#" else None
    for part in reference.removeprefix(_REFERENCE).split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    return found


def object_for(schema: Schema, tries: Iterator[Choices]) -> JsonObject | None:
    """An object that fits the schema, by the first of the choices for which one does; None if none does."""
    for choices in tries:
        try:
            value = _Values(schema.document, choices).value(schema.document, 1)
        except (_TooLarge, OverflowError):  # OverflowError of numbers that are too large for a double
            continue
        if isinstance(value, dict) and schema.mistake_in(value) is None:
            return value
    return None


class _TooLarge(Exception):
    """The object would have more than UNITS_MAX."""


class _Values:
    """Makes one object."""

    def __init__(self, root: JsonObject, choices: Choices) -> None:
        self._root = root
        self._choices = choices
        self._units = 0

    def _spend(self, units: int) -> None:
        self._units += units
        if self._units > UNITS_MAX:
            raise _TooLarge

    def _has_room(self, level: int) -> bool:
        """Whether there is room for what is optional."""
        return level <= LEVELS_MAX and self._units <= VALUES_MAX

    def value(self, schema: Any, level: int) -> Json:
        """A value that probably fits; raises _TooLarge."""
        self._spend(1)
        if not isinstance(schema, dict) or level > 2 * LEVELS_MAX:
            return "text"
        if "const" in schema:
            return schema["const"]
        for keyword in ("enum", "examples"):
            if schema.get(keyword):
                return self._choices.one_of(tuple(schema[keyword]))
        if "$ref" in schema:
            return self.value(_referred(self._root, schema["$ref"]), level + 1)
        for keyword in ("anyOf", "oneOf"):
            if schema.get(keyword):
                chosen = self._choices.one_of(tuple(schema[keyword]))
                rest = {key: each for key, each in schema.items() if key != keyword}
                return self.value({**rest, **chosen} if isinstance(chosen, dict) else rest, level + 1)
        return self._of_type(schema, level)

    def _of_type(self, schema: JsonObject, level: int) -> Json:
        match self._type_of(schema):
            case "object":
                return self._object(schema, level)
            case "array":
                return self._array(schema, level)
            case "integer" | "number" as kind:
                return self._choices.one_of(tuple(_numbers(schema, is_whole=kind == "integer")))
            case "boolean":
                return self._choices.one_of((True, False))
            case "null":
                return None
        text = str(self._choices.one_of(tuple(_texts(schema))))
        self._spend(len(text) // UNIT_CHARACTERS)
        return text

    def _type_of(self, schema: JsonObject) -> str:
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return str(self._choices.one_of(tuple(kinds)))
        implied = "object" if {"properties", "required"} & schema.keys() else "array" if "items" in schema else "string"
        return str(kinds or implied)

    def _object(self, schema: JsonObject, level: int) -> JsonObject:
        required = schema.get("required", ())
        found: JsonObject = {}
        for name, each in schema.get("properties", {}).items():
            if name in required or (self._has_room(level) and self._choices.is_taken(OPTIONAL_SHARE)):
                found[name] = self.value(each, level + 1)
        return found | {name: "text" for name in required if name not in found}

    def _array(self, schema: JsonObject, level: int) -> list[Json]:
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, self._choices.largest))
        size = self._choices.size(level) if self._has_room(level) else 0
        items = schema.get("items", {})
        return [self.value(items, level + 1) for _ in range(min(max(size, least), most))]


def _numbers(schema: JsonObject, *, is_whole: bool) -> Iterator[Json]:
    """Numbers within the bounds of a schema, those at the bounds first."""
    step = schema.get("multipleOf", 1 if is_whole else 0.5)
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    least = max(least, schema.get("exclusiveMinimum", -math.inf) + step)
    most = min(most, schema.get("exclusiveMaximum", math.inf) - step)
    bounds = [bound for bound in (least, most) if math.isfinite(bound)]
    found = [each for each in (*bounds, *(number * step for number in NUMBERS)) if least <= each <= most]
    for each in dict.fromkeys(_multiple(each, step) for each in found or bounds or [0]):
        yield int(each) if is_whole else each


def _multiple(number: float, step: float) -> float:
    return -(-number // step) * step if step else number


def _texts(schema: JsonObject) -> Iterator[str]:
    """Texts that fit the format or the lengths of a schema."""
    if schema.get("format") in FORMATS:
        yield from FORMATS[schema["format"]]
        return
    least = schema.get("minLength", 0)
    most = min(schema.get("maxLength", TEXT_CHARACTERS_MAX), max(least, TEXT_CHARACTERS_MAX))
    found = [text for text in TEXTS if least <= len(text) <= most]
    bounds = ["x" * least] if least else []
    bounds += ["x" * most] if "maxLength" in schema else []
    yield from dict.fromkeys([*found, *bounds] or ["x" * least])
