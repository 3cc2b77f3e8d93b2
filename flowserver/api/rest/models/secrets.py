"""Secrets, without their values."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import (
    LIMITS,
    Instant,
    NextToken,
    QueryParameters,
    RequestBody,
    Resource,
    with_examples,
)
from flowserver.base.clock import format_instant
from flowserver.operations.function_names import WITHOUT_SERVICE
from flowserver.operations.secrets import ShownSecret
from flowserver.store.named_secrets import USES_MAX, SecretUse

_USE = {"kind": "function", "name": "shop/charge"}
_SECRET = {
    "name": "CHARGE_TOKEN",
    "createdTime": "2026-01-02T03:04:05.678Z",
    "lastModifiedTime": "2026-01-02T03:04:05.678Z",
    "usedBy": [_USE],
}


class PutSecret(RequestBody):
    """A secret's value, which no reply shows."""

    model_config = with_examples({"value": "the value"})

    value: Annotated[
        str,
        Field(
            repr=False,
            description=f"1 to {LIMITS.secret_bytes_max:,} printable ASCII characters, without blanks at its ends.",
            json_schema_extra={"format": "password", "writeOnly": True},
        ),
    ]


class DeleteSecretQuery(QueryParameters):
    """How a secret is deleted."""

    force: Annotated[bool, Field(description="Also if something refers to the secret: its calls fail then.")] = False


class SecretUser(Resource):
    """What refers to a secret."""

    model_config = with_examples(_USE)

    kind: Annotated[str, Field(description="`function`.")]
    name: Annotated[str, Field(description="Such as `shop/charge`.")]

    @classmethod
    def of(cls, use: SecretUse) -> Self:
        """The resource."""
        return cls(kind="function", name=f"{use.service or WITHOUT_SERVICE}/{use.function}")


class Secret(Resource):
    """A secret. Its value is written only."""

    model_config = with_examples(_SECRET)

    name: str
    created_time: Instant
    last_modified_time: Instant
    used_by: Annotated[list[SecretUser], Field(description=f"What refers to it, the first {USES_MAX}.")]

    @classmethod
    def of(cls, shown: ShownSecret) -> Self:
        """The secret."""
        return cls(
            name=shown.row.name,
            created_time=format_instant(shown.row.created_at),
            last_modified_time=format_instant(shown.row.modified_at),
            used_by=[SecretUser.of(use) for use in shown.uses],
        )


class SecretPage(Resource):
    """Secrets by name."""

    model_config = with_examples({"secrets": [_SECRET], "nextToken": None})

    secrets: list[Secret]
    next_token: NextToken
