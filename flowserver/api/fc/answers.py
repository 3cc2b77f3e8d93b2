"""Answers to Function Compute clients: status, headers, body. Decides only their format."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from starlette.types import Receive, Scope, Send

from flowserver.api.large_bodies import send_pieces
from flowserver.base.errors import FlowServerError, MissingParameter, ResourceThrottled
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.operations.refusals import Unsigned

JSON_TYPE = "application/json"
OPEN_API_PREFIX: Final = "/2021-04-06/"
"""Begins the paths of the version that the OpenAPI clients speak."""

_OTHERWISE = {
    MissingParameter: ("MissingRequiredHeader", 400),
    Unsigned: ("MissingRequiredHeader", 400),
    ResourceThrottled: ("ResourceThrottled", 503),
}
"""Codes and statuses that this API has for errors which the others name differently."""


@dataclass(frozen=True)
class Answer:
    """A reply; an ASGI application that sends it, once it has been given its request id."""

    status: int
    body: bytes | list[bytes] = b""
    """Pieces, if it may be large."""
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, str] | None = None
    """Code and message of a refusal, whose body depends on the version of the API."""

    async def send(self, send: Send, request_id: str, path: str) -> None:
        """Send it; every reply names its request. `path` is the request's, which begins with the API's version."""
        body = self.body if self.refused is None else _refusal_body(*self.refused, request_id, path)
        fields = {"content-type": self.content_type, "x-fc-request-id": request_id, **self.headers}
        if self.status == 204:
            del fields["content-type"]
        headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fields.items()]
        if self.status == 204:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send_pieces(send, self.status, headers, body if isinstance(body, list) else [body])


def _refusal_body(code: str, message: str, request_id: str, path: str) -> bytes:
    """What the clients of a version read: fc2 the first two members, the OpenAPI clients the others."""
    body: JsonObject = {"ErrorCode": code, "ErrorMessage": message}
    if path.startswith(OPEN_API_PREFIX):
        body |= {"Code": code, "Message": message, "RequestId": request_id}
    return dump_json(body).encode("utf-8", "replace")


def document(body: JsonObject, status: int = 200) -> Answer:
    """A JSON object as an answer."""
    return Answer(status, dump_json(body).encode("utf-8", "replace"))


def refusal(status: int, code: str, message: str) -> Answer:
    """A refusal as the SDKs read it."""
    return Answer(status, refused=(code, message))


def fault(error: FlowServerError) -> Answer:
    """The refusal for an error of ours."""
    code, status = _OTHERWISE.get(type(error), (error.code, error.status))
    return refusal(status, code, error.message)


def fault_response(error: FlowServerError, request_id: str) -> "FaultResponse":
    """A fault of the frame around the API, as an ASGI application."""
    return FaultResponse(error, request_id)


class FaultResponse:
    """Answers why a request was not read, and closes the connection."""

    def __init__(self, error: FlowServerError, request_id: str) -> None:
        answer = fault(error)
        self._answer = replace(answer, headers={"connection": "close"})
        self._request_id = request_id

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._answer.send(send, self._request_id, scope["path"])
