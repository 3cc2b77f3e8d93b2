"""Answers, and errors as answers: status, headers, and an XML document."""

from dataclasses import dataclass, field, replace

from starlette.types import ASGIApp, Receive, Scope, Send

from flowserver.api.mns.faults import spelled
from flowserver.api.mns.xml_documents import Fields, write_document
from flowserver.base.errors import FlowServerError

VERSION = b"2015-06-06"

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; its body, if any, is an XML document."""

    status: int
    body: bytes = b""
    headers: Headers = field(default=())


def answered(status: int, name: str, fields: Fields) -> Answer:
    """An answer that is a flat document."""
    return Answer(status, write_document(name, fields))


def fault_answer(error: FlowServerError, host: str, request_id: str) -> Answer:
    """The answer for an error; clients require every element of its document."""
    code, status = spelled(error)
    fields = {"Code": code, "Message": error.message, "RequestId": request_id, "HostId": f"http://{host}"}
    return Answer(status, write_document("Error", fields))


def fault_response(error: FlowServerError, request_id: str) -> ASGIApp:
    """`fault_answer` as an application that closes the connection, for the middleware around this API's route."""

    async def respond(scope: Scope, _receive: Receive, send: Send) -> None:
        hosts = (value.decode("latin-1") for name, value in scope["headers"] if name == b"host")
        answer = fault_answer(error, next(hosts, ""), request_id)
        await send_answer(send, replace(answer, headers=((b"connection", b"close"),)), request_id)

    return respond


async def send_answer(send: Send, answer: Answer, request_id: str) -> None:
    """Send an answer."""
    headers = [(b"x-mns-request-id", request_id.encode()), (b"x-mns-version", VERSION), *answer.headers]
    if answer.status != 204:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    if answer.body:
        headers.append((b"content-type", b"text/xml;charset=utf-8"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
