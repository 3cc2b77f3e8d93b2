"""Answers and errors: status, headers, and an XML document, which is flat or a list of flat documents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape

from starlette.types import ASGIApp, Receive, Scope, Send

from flowserver.api.mns.faults import spelled
from flowserver.base.errors import FlowServerError
from flowserver.base.xml_characters import fit_for_xml

VERSION = b"2015-06-06"
NAMESPACE = "http://mns.aliyuncs.com/doc/v1/"

Fields = Mapping[str, object]
"""The elements of a flat document. None leaves an element out, because clients cannot read empty ones."""

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


def write_document(name: str, fields: Fields) -> bytes:
    """A flat document."""
    return _document(name, _elements(fields))


def write_list(name: str, item_name: str, items: Iterable[Fields], more: Fields | None = None) -> bytes:
    """A list of flat documents, followed by the elements of `more`."""
    texts = [f"<{item_name}>{_elements(item)}</{item_name}>" for item in items]
    return _document(name, "".join(texts) + _elements(more or {}))


def _document(name: str, content: str) -> bytes:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{NAMESPACE}">{content}</{name}>'
    return text.encode()


def _elements(fields: Fields) -> str:
    parts = [f"<{name}>{_text(value)}</{name}>" for name, value in fields.items() if value is not None]
    return "".join(parts)


def _text(value: object) -> str:
    text = str(value)
    if text.isalnum() and text.isascii():
        return text
    # An XML parser would read a bare carriage return as a line feed.
    return escape(fit_for_xml(text), {"\r": "&#13;"})
