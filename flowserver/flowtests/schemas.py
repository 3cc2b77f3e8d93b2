"""What test files know of the JSON Schemas in them; `json_schemas` has the schemas themselves."""

from typing import Protocol

from flowserver.base.json_values import Json, JsonObject


class SchemaInvalid(Exception):
    """It is no JSON Schema; `path` leads to the place in it."""

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path = path


class Schema(Protocol):
    """A JSON Schema that is valid."""

    @property
    def document(self) -> JsonObject:
        """As the file has it."""

    def mistake_in(self, value: Json) -> str | None:
        """What is wrong with a value, and where; None if it fits."""
