"""JSON Schemas of outputs and inputs. Loaded when a test file has one: its library takes long to load.

A schema fetches nothing: `$ref` reaches only into the schema itself. Its regular expressions are those of
`schema_patterns`, which take time in proportion to the text.
"""

from typing import Any, Final

from jsonschema import exceptions, validators
from referencing import Registry

from flowserver.base.json_values import Json, JsonObject
from flowserver.flowtests.schema_patterns import FORMATS, linear, unbounded_part
from flowserver.flowtests.schemas import Schema, SchemaInvalid, SchemaMistake

MESSAGE_CHARACTERS_MAX: Final = 300
MISTAKES_MAX: Final = 5
"""Mistakes of one value that are shown."""


def compiled(document: JsonObject) -> Schema:
    """The schema; its `$schema` says which draft it is, 2020-12 if it has none. Raises SchemaInvalid."""
    try:
        kind = validators.validator_for(document, default=validators.Draft202012Validator)
    except (TypeError, AttributeError, ValueError):
        raise SchemaInvalid("`$schema` is not the URI of a draft", ("$schema",)) from None
    try:
        kind.check_schema(document, format_checker=FORMATS)
    except exceptions.SchemaError as error:
        message = str(error.cause) if error.cause is not None else error.message
        raise SchemaInvalid(_cut(message), tuple(error.absolute_path)) from None
    if (path := unbounded_part(document)) is not None:
        raise SchemaInvalid("`patternProperties` cannot be used together with `unevaluatedProperties`", path)
    return _Compiled(document, linear(kind)(document, registry=Registry()))


class _Compiled:
    def __init__(self, document: JsonObject, validator: Any) -> None:
        self.document = document
        self._validator = validator

    def mistake_in(self, value: Json) -> SchemaMistake | None:
        """What is wrong with a value; None if it fits."""
        try:
            errors = list(self._validator.iter_errors(value))
            first = exceptions.best_match(iter(errors))
        except Exception as failure:  # the library does not check parts that only a `$ref` reaches
            return SchemaMistake(f"the schema cannot be applied: {_cut(str(failure))}", type(failure).__name__)
        if first is None:
            return None
        named = first.message if first.validator == "required" else ""  # which of the members is missing
        others = [_told(error) for error in errors[:MISTAKES_MAX] if not _is_within(first, error)]
        more = ["and more"] if len(errors) > MISTAKES_MAX else []
        return SchemaMistake("; ".join((_told(first), *others, *more)), f"{list(first.schema_path)}{named}")


def _told(error: Any) -> str:
    return f"{error.json_path}: {_cut(error.message)}"


def _is_within(error: Any, other: Any) -> bool:
    """Whether an error is another one, or one of the reasons for it."""
    while error is not None and error is not other:
        error = error.parent
    return error is other


def _cut(message: str) -> str:
    return message if len(message) <= MESSAGE_CHARACTERS_MAX else f"{message[: MESSAGE_CHARACTERS_MAX - 1]}…"
