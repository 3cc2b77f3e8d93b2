"""An HTTP server with threads that loses no connection, even if many arrive at once."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WAITING_CONNECTIONS_MAX = 1024
"""Python's own servers queue five connections. The kernel drops further ones and retries them only after seconds, then
minutes. A server under test opens more.
"""


class ThreadingServer(ThreadingHTTPServer):
    """Listens on a free port of 127.0.0.1; its threads end with the process."""

    request_queue_size = WAITING_CONNECTIONS_MAX
    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        """Base URL without a final slash."""
        return f"http://127.0.0.1:{self.server_port}"
