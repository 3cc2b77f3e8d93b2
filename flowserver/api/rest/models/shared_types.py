"""What all models share: camelCase names, nothing unknown, and the types that recur."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.base.names import NAME

LIMITS = Limits()
"""For bounds that are the same in every profile; the operations check those that differ."""

NAME_PATTERN = "^" + NAME.pattern.replace(r"\Z", "$")
DEFINITION_CHOICE_PATTERN = "^(same|current|[1-9][0-9]{0,8})$"
EXECUTION_PATTERN = r"^[A-Za-z0-9_:-]{1,168}$"
PREFIX_PATTERN = r"^[A-Za-z0-9_:./-]*$"
TOKEN_PATTERN = r"^[A-Za-z0-9_:./-]+$"  # noqa: S105 - a pattern, no secret
QUALIFIER_PATTERN = r"^([A-Za-z_][A-Za-z0-9_-]{0,127}|[0-9]{1,9})$"

Name = Annotated[
    str,
    Field(
        pattern=NAME_PATTERN,
        description="1 to 128 letters, digits, `_` and `-`; the first is a letter or `_`.",
    ),
]
Instant = Annotated[
    str, Field(description="RFC 3339, in UTC, with milliseconds.", json_schema_extra={"format": "date-time"})
]
NextToken = Annotated[
    str | None, Field(description="Give it as `nextToken` to read the next page; null on the last page.")
]


class Resource(BaseModel):
    """Something a reply shows."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, extra="forbid"
    )


class RequestBody(BaseModel):
    """A JSON body. Types are taken literally: a number in quotes is a text."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)

    @classmethod
    def example(cls) -> JsonObject:
        """The first example of the schema."""
        first: JsonObject = cls.model_json_schema()["examples"][0]
        return first


class QueryParameters(BaseModel):
    """The query of a request; parameters that it does not know are refused, so that no typing mistake goes unseen."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class PageQuery(QueryParameters):
    """Which page of a listing."""

    limit: Annotated[
        int | None,
        Field(ge=1, le=LIMITS.page_max, description=f"Items on the page, 1 to {LIMITS.page_max}; 60 if not given."),
    ] = None
    next_token: Annotated[
        str | None,
        Field(pattern=TOKEN_PATTERN, description="`nextToken` of the page before; the listing's beginning if absent."),
    ] = None


def with_examples(*examples: JsonObject) -> ConfigDict:
    """Model configuration that shows these in the schema."""
    return ConfigDict(json_schema_extra={"examples": list(examples)})
