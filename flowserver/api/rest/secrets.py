"""/v1/secrets: values that URLs and headers refer to. They are written, and never shown."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.secrets import DeleteSecretQuery, PutSecret, Secret, SecretPage
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.parameters import SecretName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import MissingParameter, ResourceThrottled, UnsupportedMediaType
from flowserver.operations.secrets import SecretInUse, SecretNotExists, SecretsKeyMissing

router = rest_router("/secrets", "secrets")


@router.get("", summary="List secrets", response_model=SecretPage, responses=problems())
async def list_secrets(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """All secrets by name, without their values, and what refers to them."""
    found = await operations.secrets.list(next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "secrets", Secret.of)


@router.get("/{name}", summary="Show a secret", response_model=Secret, responses=problems(SecretNotExists))
async def get_secret(name: SecretName, operations: Ops) -> Response:
    """When the secret was set, and what refers to it. Its value is never shown."""
    return answer(Secret.of(await operations.secrets.describe(name)))


@router.put(
    "/{name}",
    summary="Set a secret",
    response_model=Secret,
    response_description="The value is replaced.",
    responses=problems(MissingParameter, UnsupportedMediaType, SecretsKeyMissing, ResourceThrottled)
    | {201: {"model": Secret, "description": "The secret is new."}},
    openapi_extra=json_request(PutSecret),
)
async def put_secret(
    name: SecretName, operations: Ops, wanted: Annotated[PutSecret, Depends(json_body(PutSecret))]
) -> Response:
    """Create a secret, or replace its value. Functions' URLs and headers refer to it as `${secret:NAME}`.

    The value is stored encrypted; without a key the server refuses it. Calls use it within a second.
    """
    shown, is_new = await operations.secrets.put(name, wanted.value)
    return answer(Secret.of(shown), 201 if is_new else 200)


@router.delete("/{name}", summary="Delete a secret", status_code=204, responses=problems(SecretNotExists, SecretInUse))
async def delete_secret(name: SecretName, operations: Ops, query: Annotated[DeleteSecretQuery, Query()]) -> Response:
    """Delete a secret. While something refers to it, that needs `force`."""
    await operations.secrets.delete(name, force=query.force)
    return Response(status_code=204)
