"""Request bodies: read as text and parsed exactly. `described_bodies` shows them in the OpenAPI document.

The server's own JSON reader takes the place of the framework's, which would accept NaN and lone surrogates.
"""

from collections.abc import Awaitable, Callable
from email.message import Message

from starlette.requests import Request

from flowserver.api.rest.validation import M, validated
from flowserver.base.errors import InvalidArgument, MissingParameter, UnsupportedMediaType
from flowserver.base.json_values import InvalidJson, JsonObject, load_json_object
from flowserver.base.utf8_texts import NotUtf8, utf8_text

JSON_TYPE = "application/json"
DEFINITION_TYPES = ("application/yaml", "text/yaml", "application/x-yaml", "text/plain")
"""Media types under which a body is a definition and nothing else."""

DEFINITION_KEYS = frozenset({"version", "steps"})
"""What tells a definition, sent as JSON, from a body that has one in its field `definition`."""

CHARSETS = (None, "utf-8", "us-ascii")


def json_body(model: type[M]) -> Callable[[Request], Awaitable[M]]:
    """A dependency that reads a JSON body; an empty one is `{}`, with any media type."""

    async def read(request: Request) -> M:
        body = await request.body()
        if not body:
            return validated(model, {})
        _check_media_type(request, (JSON_TYPE,))
        return validated(model, _json(body))

    return read


async def read_definition(request: Request, model: type[M], query: JsonObject) -> M:
    """A JSON body, or a bare definition (as JSON too) with its other fields in the query.

    A bare definition is taken as the text that it is.
    """
    body = await request.body()
    media_type = _check_media_type(request, (JSON_TYPE, *DEFINITION_TYPES))
    given = {name: value for name, value in query.items() if value is not None}
    values = _json(body) if media_type == JSON_TYPE else None
    if values is not None and not _is_definition(values):
        return validated(model, given | values)
    if "name" in model.model_fields and "name" not in given:
        raise MissingParameter("`name` is required: give it as ?name=… when the body is the bare definition")
    return validated(model, {**given, "definition": _text(body)})


def _is_definition(values: JsonObject) -> bool:
    return "definition" not in values and values.keys() >= DEFINITION_KEYS


def _check_media_type(request: Request, media_types: tuple[str, ...]) -> str:
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    media_type = header.get_content_type() if "content-type" in request.headers else ""
    if media_type not in media_types:
        known = " or ".join(f"`{each}`" for each in media_types)
        raise UnsupportedMediaType(f"send the header `Content-Type` with the value {known}")
    if header.get_content_charset() not in CHARSETS:
        raise UnsupportedMediaType("the body must be UTF-8")
    return media_type


def _json(body: bytes) -> JsonObject:
    try:
        return load_json_object(body)
    except InvalidJson as error:
        raise InvalidArgument(f"the body must be a JSON object: {error}") from None


def _text(body: bytes) -> str:
    try:
        return utf8_text(body)
    except NotUtf8 as error:
        raise InvalidArgument(f"the body is {error}") from None
