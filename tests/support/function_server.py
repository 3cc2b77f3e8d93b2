"""Functions for a real server process to call: an HTTP server in a thread, scripted by the test.

with FunctionServer(lambda call: {"twice": 2 * call.event["n"]}) as functions:
    functions.register(server.url, "shop/double")
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self

import httpx

from tests.support.threading_server import ThreadingServer


@dataclass(frozen=True)
class Call:
    """One call: the function's title, `service/function`, the event, None if it is not JSON, its bytes, and the headers
    in lower case.
    """

    function: str
    event: Any
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class FunctionError:
    """An error of a handler: its class and its text."""

    type: str
    message: str = ""


def echo(call: Call) -> Any:
    """Return the event."""
    return call.event


def _event(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


class FunctionServer:
    """Answers every function with `answer(call)`: JSON, bytes, or a FunctionError. `calls` are those so far."""

    def __init__(self, answer: Callable[[Call], Any] = echo) -> None:
        self.calls: list[Call] = []
        functions = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                call = Call(self.path.removeprefix("/"), _event(body), headers, body)
                functions.calls.append(call)
                result = answer(call)
                self.send_response(200)
                if isinstance(result, FunctionError):
                    self.send_header("X-Fc-Error-Type", "UnhandledInvocationError")
                    result = {"errorType": result.type, "errorMessage": result.message}
                body = result if isinstance(result, bytes) else json.dumps(result).encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingServer(Handler)
        self.url = self._server.url
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def register(self, server_url: str, *titles: str, token: str = "") -> None:
        """Register these functions, written `service/function`, at a flowserver."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with httpx.Client(base_url=server_url, headers=headers, trust_env=False) as client:
            for title in titles:
                client.put(f"/v1/functions/{title}", json={"url": f"{self.url}/{title}"}).raise_for_status()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
