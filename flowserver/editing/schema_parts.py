"""Tables of attributes as JSON Schema, draft 7, which every YAML editor knows.

A schema is never stricter than the parser: what it refuses, the parser refuses. The other way, it lacks the rules that
need more than one value, such as the targets of gotos; docs/how-to/edit-flows.md lists these.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from flowserver.base.json_values import Json, JsonObject
from flowserver.base.limits import Limits
from flowserver.language.fields import Field, ObjectKind, Shape

DRAFT: Final = "http://json-schema.org/draft-07/schema#"

_TYPES: Final = {
    Shape.TEXT: "string",
    Shape.WHOLE: "integer",
    Shape.NUMBER: "number",
    Shape.BOOLEAN: "boolean",
    Shape.LIST: "array",
    Shape.MAP: "object",
}
_BOUNDS: Final = {
    Shape.TEXT: ("minLength", "maxLength"),
    Shape.WHOLE: ("minimum", "maximum"),
    Shape.NUMBER: ("minimum", "maximum"),
    Shape.LIST: ("minItems", "maxItems"),
}


def ref(name: str) -> JsonObject:
    """A reference to a definition of the same schema."""
    return {"$ref": f"#/definitions/{name}"}


def object_schema(kind: ObjectKind, limits: Limits, held: Mapping[str, JsonObject]) -> JsonObject:
    """The schema of one kind of object; `held` has what attributes hold, or what each entry of their lists is."""
    schema: JsonObject = {
        "title": kind.title,
        "type": "object",
        "additionalProperties": False,
        "properties": {name: field_schema(field, limits, held.get(name)) for name, field in kind.fields.items()},
    }
    required: list[Json] = [name for name, field in kind.fields.items() if field.required]
    if required:
        schema["required"] = required
    return schema | _groups(kind)


def _groups(kind: ObjectKind) -> JsonObject:
    groups: JsonObject = {}
    if kind.exactly_one:
        groups["oneOf"] = [{"required": [name]} for name in kind.exactly_one]
    if kind.at_least_one:
        groups["anyOf"] = [{"required": [name]} for name in kind.at_least_one]
    if kind.at_most_one:
        groups["allOf"] = [{"not": {"required": [*pair]}} for pair in kind.at_most_one]
    return groups


def field_schema(field: Field, limits: Limits, held: JsonObject | None = None) -> JsonObject:
    """The schema of one attribute, with its description."""
    return described(field.doc, field.default) | _alternatives(field, limits, held)


def described(doc: str, default: str = "none") -> JsonObject:
    """A description, and its Markdown for the editors that show it."""
    text = doc if default == "none" else f"{doc} Without it: {default}."
    plain = text.replace("`", "")
    return {"description": plain} if plain == text else {"description": plain, "markdownDescription": text}


def one_of(alternatives: Iterable[JsonObject]) -> JsonObject:
    """A value that fits one of the schemas, or more."""
    found: list[Json] = list(alternatives)
    first = found[0]
    assert isinstance(first, dict)
    return {"anyOf": found} if found[1:] else first


def _alternatives(field: Field, limits: Limits, held: JsonObject | None) -> JsonObject:
    if Shape.ANY in field.shapes:
        return {}
    return one_of(_of_shape(shape, field, limits, held) for shape in field.shapes)


def _of_shape(shape: Shape, field: Field, limits: Limits, held: JsonObject | None) -> JsonObject:
    if shape is Shape.MAP and held is not None:
        return held
    schema: JsonObject = {"type": _TYPES[shape]}
    if shape is Shape.TEXT:
        schema |= _text(field)
    if shape is Shape.LIST:
        held = _of_shape(Shape.TEXT, field, limits, None) if Shape.TEXT in field.shapes else held
        schema |= {} if held is None else {"items": held}
    if shape in _BOUNDS and (shape is not Shape.TEXT or field.shapes == (Shape.TEXT,)):
        schema |= _bounds(shape, field, limits)
    return schema


def _text(field: Field) -> JsonObject:
    if field.words:
        return {"enum": [*field.words]}
    return {"pattern": field.pattern, "patternErrorMessage": field.doc.replace("`", "")} if field.pattern else {}


def _bounds(shape: Shape, field: Field, limits: Limits) -> JsonObject:
    least, most = _BOUNDS[shape]
    bounds: JsonObject = {}
    if field.bounds.least or least == "minimum":
        bounds[least] = field.bounds.least
    if (maximum := field.bounds.most_of(limits)) is not None:
        bounds[most] = maximum
    return bounds
