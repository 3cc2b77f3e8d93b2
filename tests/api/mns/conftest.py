"""The message service's API of a running application, in XML as its clients see it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element, fromstring

import httpx
import pytest

NAMESPACE = "{http://mns.aliyuncs.com/doc/v1/}"


@dataclass(frozen=True)
class Reply:
    """A reply with its parsed document."""

    status: int
    headers: httpx.Headers
    root: Element | None

    @property
    def fields(self) -> dict[str, str | None]:
        """The elements of a flat document."""
        assert self.root is not None
        return fields_of(self.root)

    @property
    def items(self) -> list[dict[str, str | None]]:
        """The flat documents of a list."""
        assert self.root is not None
        return [fields_of(child) for child in self.root if len(child)]

    @property
    def name(self) -> str:
        assert self.root is not None
        return self.root.tag.removeprefix(NAMESPACE)


def fields_of(element: Element) -> dict[str, str | None]:
    assert all(child.tag.startswith(NAMESPACE) for child in element)
    return {child.tag.removeprefix(NAMESPACE): child.text for child in element}


class Mns:
    """Sends requests as the SDKs do."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def send(
        self, method: str, path: str, body: str | bytes = "", headers: Mapping[str, str] | None = None
    ) -> Reply:
        response = await self.http.request(method, path, content=body, headers=dict(headers or {}))
        assert response.headers["x-mns-request-id"] == response.headers["x-request-id"]
        assert response.headers["x-mns-version"] == "2015-06-06"
        if response.content:
            assert response.headers["content-type"] == "text/xml;charset=utf-8", response.text
            return Reply(response.status_code, response.headers, fromstring(response.content))
        return Reply(response.status_code, response.headers, None)

    async def ask(self, status: int, method: str, path: str, body: str | bytes = "", **headers: str) -> Reply:
        """A reply that must have that status."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        reply = await self.send(method, path, body, named)
        assert reply.status == status, (reply.status, reply.root is not None and reply.fields)
        return reply

    async def refused(
        self, status: int, code: str, method: str, path: str, body: str | bytes = "", **headers: str
    ) -> str:
        """The message of a refusal; the SDKs require every element of it."""
        reply = await self.ask(status, method, path, body, **headers)
        assert reply.name == "Error"
        assert reply.fields.keys() == {"Code", "Message", "RequestId", "HostId"}
        assert all(reply.fields.values())
        assert reply.fields["Code"] == code, reply.fields
        assert reply.fields["RequestId"] == reply.headers["x-mns-request-id"]
        return str(reply.fields["Message"])

    async def make_queue(self, name: str = "q", **attributes: object) -> None:
        await self.ask(201, "PUT", f"/queues/{name}", document("Queue", **attributes))

    async def put(self, body: str, queue: str = "q", **more: object) -> dict[str, str | None]:
        """Send a message; returns the reply's elements."""
        text = document("Message", MessageBody=body, **more)
        return (await self.ask(201, "POST", f"/queues/{queue}/messages", text)).fields

    async def get(self, queue: str = "q", query: str = "") -> dict[str, str | None]:
        """Receive a message."""
        return (await self.ask(200, "GET", f"/queues/{queue}/messages{query}")).fields


def document(name: str, **fields: object) -> str:
    """A flat document; values must need no escaping."""
    content = "".join(f"<{field}>{value}</{field}>" for field, value in fields.items())
    return f'<?xml version="1.0" encoding="utf-8"?><{name} xmlns="http://mns.aliyuncs.com/doc/v1/">{content}</{name}>'


@pytest.fixture
async def mns(client: httpx.AsyncClient) -> AsyncIterator[Mns]:
    yield Mns(client)
