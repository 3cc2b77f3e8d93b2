"""A client that closes its connection cancels its call: the slot of the call is free at once."""

import socket
from threading import Event
from typing import Any

import httpx
import pytest

from tests.api.fc.conftest import INVOKE
from tests.support.function_server import Call, FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one process", "two processes"])
def test_the_slot_of_an_abandoned_call_is_free(sqlite_url: str, options: tuple[str, ...]) -> None:
    called, end = Event(), Event()

    def answer(call: Call) -> Any:
        if call.body == b'"hang"':
            called.set()
            end.wait(2 * PATIENCE_SECONDS)  # longer than a client waits for its answer
        return "done"

    with FunctionServer(answer) as functions, ServerProcess(sqlite_url, *options) as server:
        try:
            with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
                bounds = {"concurrencyMax": 1}
                client.put("/v1/functions/shop/pay", json={"url": functions.url, **bounds}).raise_for_status()
                first = abandonable(server.port, '"hang"')
                assert called.wait(PATIENCE_SECONDS)
                first.close()
                assert client.post(INVOKE, content='"next"').text == '"done"'
        finally:
            end.set()


def abandonable(port: int, payload: str) -> socket.socket:
    """A connection with a call of the function under way."""
    connection = socket.create_connection(("127.0.0.1", port))
    head = f"POST {INVOKE} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(payload)}\r\n\r\n"
    connection.sendall((head + payload).encode())
    return connection
