"""What test files know of the JSON Schemas in them; `json_schemas` has the schemas themselves."""

from typing import NamedTuple, Protocol

from flowserver.base.json_values import Json, JsonObject


class SchemaInvalid(Exception):
    """It is no JSON Schema; `path` leads to the place in it."""

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path = path


class SchemaMistake(NamedTuple):
    """Why a value does not fit."""

    message: str
    """What is wrong, and where."""
    kind: str
    """The part of the schema that it does not fit: the same for values that are wrong in the same way."""


class Schema(Protocol):
    """A JSON Schema that is valid."""

    @property
    def document(self) -> JsonObject:
        """As the file has it."""

    def mistake_in(self, value: Json) -> SchemaMistake | None:
        """What is wrong with a value; None if it fits."""
