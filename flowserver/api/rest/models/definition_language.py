"""The definition language as data, for editors: made from the tables that the server itself reads definitions by."""

from collections.abc import Iterator
from typing import Annotated, Final, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Resource, with_examples
from flowserver.base.json_values import JsonObject
from flowserver.invokers.error_names import ErrorName
from flowserver.language import fields
from flowserver.machine.retry_and_catch import ALL_ERRORS

CONTEXT_PATHS: Final = (
    "$context.flow.name",
    "$context.execution.name",
    "$context.execution.startedTime",
    "$context.step.name",
    "$context.step.eventId",
    "$context.task.token",
)

_ERRORS: Final = [ALL_ERRORS, *(str(name) for name in ErrorName if "{" not in name)]

_ATTRIBUTE: Final[JsonObject] = {
    "name": "retry",
    "shapes": ["a list"],
    "description": "Policies for errors; the first that names the error is used.",
    "required": False,
    "default": "no retry",
    "holds": "retryPolicy",
    "values": [],
}
_KIND: Final[JsonObject] = {"name": "task", "title": "a task step", "isStep": True, "attributes": [_ATTRIBUTE]}


class LanguageAttribute(Resource):
    """An attribute of one kind of object."""

    model_config = with_examples(_ATTRIBUTE)

    name: str
    shapes: Annotated[list[str], Field(description="What its value may be, such as `a text` or `a list`.")]
    description: str
    required: bool
    default: Annotated[str, Field(description="What holds without it, in words; `none` if nothing does.")]
    holds: Annotated[
        str | None,
        Field(description="The kind of object that it holds, or that each entry of its list is; `step`: any step."),
    ]
    values: Annotated[list[str], Field(description="Values to choose from; empty if they cannot be listed.")]


class LanguageKind(Resource):
    """One kind of object in definitions."""

    model_config = with_examples(_KIND)

    name: Annotated[str, Field(description="Of a step its `type`.")]
    title: Annotated[str, Field(description="Its name in messages.")]
    is_step: bool
    attributes: list[LanguageAttribute]

    @classmethod
    def of(cls, name: str, kind: fields.ObjectKind, *, is_step: bool = False) -> Self:
        """The kind with its attributes, in the order of the reference page."""
        attributes = [
            LanguageAttribute(
                name=field.name,
                shapes=[shape.value for shape in field.shapes],
                description=field.doc,
                required=field.required,
                default=field.default,
                holds=fields.HOLDS.get(field.name),
                values=_values(name, field, is_step),
            )
            for field in kind.fields.values()
        ]
        return cls(name=name, title=kind.title, is_step=is_step, attributes=attributes)


def _values(kind: str, field: fields.Field, is_step: bool) -> list[str]:
    if is_step and field.name == "type":
        return [kind]
    if field.name == "errors":
        return _ERRORS
    if fields.Shape.BOOLEAN in field.shapes and len(field.shapes) == 1:
        return ["true", "false"]
    return [*field.words]


class DefinitionLanguage(Resource):
    """The kinds of objects that definitions are made of, with their attributes."""

    model_config = with_examples({"kinds": [_KIND], "contextPaths": [*CONTEXT_PATHS]})

    kinds: list[LanguageKind]
    context_paths: Annotated[list[str], Field(description="What mappings can read of `$context`.")]


def _kinds() -> Iterator[LanguageKind]:
    yield from (LanguageKind.of(name, kind, is_step=True) for name, kind in fields.STEPS.items())
    yield from (LanguageKind.of(name, kind) for name, kind in fields.OBJECTS.items())


LANGUAGE: Final = DefinitionLanguage(kinds=list(_kinds()), context_paths=[*CONTEXT_PATHS])
