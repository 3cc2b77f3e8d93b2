"""An endpoint that a real server process can push messages to: an HTTP server in a thread, scripted by the test.

with PushServer() as pushes:
    ... subscribe f"{pushes.url}/hook" ...
    push = pushes.next()
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from tests.support.threading_server import ThreadingServer

PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Push:
    """One request; header names in lower case."""

    path: str
    body: str
    headers: Mapping[str, str]


class PushServer:
    """Answers every push with the status that `answer` returns."""

    def __init__(self, answer: Callable[[Push], int] = lambda _: 200) -> None:
        self._came: SimpleQueue[Push] = SimpleQueue()
        came = self._came

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                push = Push(self.path, body, {name.lower(): value for name, value in self.headers.items()})
                status = answer(push)
                came.put(push)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingServer(Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = self._server.url

    def next(self) -> Push:
        """Wait for the next push."""
        return self._came.get(timeout=PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
