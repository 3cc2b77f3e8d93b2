"""How the OpenAPI document shows the bodies of requests."""

from typing import Any

from flowserver.api.rest.bodies import DEFINITION_KEYS, DEFINITION_TYPES, JSON_TYPE
from flowserver.api.rest.models.flows import DEFINITION
from flowserver.api.rest.models.shared_types import RequestBody


def json_request(model: type[RequestBody], *, required: bool = True) -> dict[str, Any]:
    """A JSON body."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {JSON_TYPE: {"schema": schema, "example": model.example()}}
    return {"requestBody": {"required": required, "content": content}}


def definition_request(model: type[RequestBody]) -> dict[str, Any]:
    """A body that is JSON or a bare definition."""
    shown = json_request(model)
    in_json = shown["requestBody"]["content"][JSON_TYPE]
    keys = sorted(DEFINITION_KEYS)
    properties: dict[str, Any] = {key: {} for key in keys}
    bare = {"type": "object", "required": keys, "properties": properties, "description": "The bare definition."}
    in_json["schema"] = {"anyOf": [in_json["schema"], bare]}
    for media_type in DEFINITION_TYPES:
        shown["requestBody"]["content"][media_type] = {"schema": {"type": "string"}, "example": DEFINITION}
    return shown
