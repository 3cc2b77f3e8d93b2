"""JSON Schemas of outputs and inputs. Loaded when a test file has one: its library takes long to load.

A schema fetches nothing: `$ref` reaches only into the schema itself.
"""

from typing import Any, Final

from jsonschema import exceptions, validators
from referencing import Registry

from flowserver.base.json_values import Json, JsonObject
from flowserver.flowtests.schemas import Schema, SchemaInvalid, SchemaMistake

MESSAGE_CHARACTERS_MAX: Final = 300


def compiled(document: JsonObject) -> Schema:
    """The schema; its `$schema` says which draft it is, 2020-12 if it has none. Raises SchemaInvalid."""
    try:
        kind = validators.validator_for(document, default=validators.Draft202012Validator)
    except (TypeError, AttributeError, ValueError):
        raise SchemaInvalid("`$schema` is not the URI of a draft", ("$schema",)) from None
    try:
        kind.check_schema(document)
    except exceptions.SchemaError as error:
        raise SchemaInvalid(_cut(error.message), tuple(error.absolute_path)) from None
    return _Compiled(document, kind(document, registry=Registry()))


class _Compiled:
    def __init__(self, document: JsonObject, validator: Any) -> None:
        self.document = document
        self._validator = validator

    def mistake_in(self, value: Json) -> SchemaMistake | None:
        """What is wrong with a value; None if it fits."""
        try:
            error = exceptions.best_match(self._validator.iter_errors(value))
        except Exception as failure:  # the library does not check parts that only a `$ref` reaches
            return SchemaMistake(f"the schema cannot be applied: {_cut(str(failure))}", type(failure).__name__)
        if error is None:
            return None
        named = error.message if error.validator == "required" else ""  # which of the members is missing
        return SchemaMistake(f"{error.json_path}: {_cut(error.message)}", f"{list(error.schema_path)}{named}")


def _cut(message: str) -> str:
    return message if len(message) <= MESSAGE_CHARACTERS_MAX else f"{message[: MESSAGE_CHARACTERS_MAX - 1]}…"
