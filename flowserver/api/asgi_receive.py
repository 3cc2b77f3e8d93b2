"""Reads what an ASGI server hands over of a request: its body, and that its client has gone."""

from starlette.requests import ClientDisconnect
from starlette.types import Receive


async def read_body(receive: Receive) -> bytes:
    """The whole body; raises ClientDisconnect."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def disconnected(receive: Receive) -> None:
    """Return once the client has closed its connection; call it after the body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass
