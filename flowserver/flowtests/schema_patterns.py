"""Regular expressions of JSON Schemas, matched in time that grows with the text and not with its powers.

Python's `re` goes back: `(a+)+$` takes years on forty letters. The expressions of pydantic, which are those of Rust, do
not. They know no look-around and no references to groups, so a schema with such an expression is refused.

`unevaluatedProperties` finds by `re`, inside its library, which members a `patternProperties` has seen. So a schema has
one or the other.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError
from pydantic_core import SchemaError, SchemaValidator, core_schema

from flowserver.base.json_values import Json, JsonObject
from flowserver.language.diagnostics import shown

Path = tuple[str | int, ...]

EXPRESSIONS_REMEMBERED: Final = 200


class PatternRefused(ValueError):
    """A regular expression that is none, or that no linear time is known for."""


@lru_cache(EXPRESSIONS_REMEMBERED)
def _compiled(pattern: str) -> SchemaValidator:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
        raise PatternRefused(f"the regular expression {shown(pattern)} cannot be used: {reason}") from None


def is_found(pattern: str, text: str) -> bool:
    """Whether some part of a text matches; raises PatternRefused."""
    return _compiled(pattern).isinstance_python(text.encode("utf-8", "replace").decode())


def _is_expression(value: object) -> bool:
    return not isinstance(value, str) or bool(_compiled(value))


FORMATS: Final = FormatChecker(formats=())
"""What is checked of the texts in a schema itself."""
FORMATS.checks("regex", raises=ValueError)(_is_expression)


def unbounded_part(document: JsonObject) -> Path | None:
    """The path of an `unevaluatedProperties` in a schema that has `patternProperties`; None without both."""
    paths = {name: path for path, name in _keywords(document, ())}
    return paths.get("unevaluatedProperties") if "patternProperties" in paths else None


def _keywords(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name in ("patternProperties", "unevaluatedProperties"):
                yield (*path, name), name
            yield from _keywords(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _keywords(part, (*path, number))


# The keywords, as the library has them, but for `re`


def _pattern(validator: Any, pattern: str, value: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not is_found(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    for pattern, schema in patterns.items():
        for name, part in value.items():
            if is_found(pattern, name):
                yield from validator.descend(part, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "object") and (patterns := schema.get("patternProperties")):
        value = {name: part for name, part in value.items() if not any(is_found(each, name) for each in patterns)}
        schema = {name: part for name, part in schema.items() if name != "patternProperties"}
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, value, schema)


_KEYWORDS: Final = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}


def linear(kind: Any) -> Any:
    """The validators of a draft with these expressions. A schema within the schema is of the same draft."""
    found = validators.extend(kind, {name: check for name, check in _KEYWORDS.items() if name in kind.VALIDATORS})
    evolve = found.evolve

    def evolved(validator: Any, **changes: Any) -> Any:
        schema = changes.get("schema", validator.schema)
        if isinstance(schema, dict):  # where a `$schema` is, the library takes its own keywords
            schema = {name: part for name, part in schema.items() if name != "$schema"}
        return evolve(validator, **{**changes, "schema": schema})

    found.evolve = evolved
    return found
