"""A reverse proxy that serves another server below a path prefix, which it removes, as nginx and Caddy do."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Thread

import httpx

from tests.support.threading_server import ThreadingServer

PER_CONNECTION = ("connection", "transfer-encoding", "keep-alive", "content-length")


@contextmanager
def prefix_proxy(server_url: str, prefix: str) -> Iterator[str]:
    """The URL that leads to the server; `prefix` begins with a slash and does not end with one."""
    # Each request has a connection of its own: the server may close a kept one while a request is on its way there.
    limits = httpx.Limits(max_keepalive_connections=0)
    with httpx.Client(base_url=server_url, trust_env=False, timeout=None, limits=limits) as upstream:

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                if not self.path.startswith(f"{prefix}/"):
                    self.send_error(404, "not below the prefix")
                    return
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                request = upstream.build_request(
                    self.command, self.path.removeprefix(prefix), content=body, headers=dict(self.headers)
                )
                response = upstream.send(request, stream=True)
                self.send_response(response.status_code)
                for name, value in response.headers.items():
                    if name not in PER_CONNECTION:
                        self.send_header(name, value)
                self.send_header("connection", "close")
                self.end_headers()
                for piece in response.iter_raw():
                    self.wfile.write(piece)
                response.close()
                self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

            def log_message(self, *_: object) -> None: ...

        proxy = ThreadingServer(Handler)
        Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"{proxy.url}{prefix}"
        proxy.shutdown()
        proxy.server_close()
