"""An HTTP server of threads in which no connection is lost, however many come at once."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WAITING_CONNECTIONS_MAX = 1024
"""Python's own servers keep five; what further clients have sent by then, the kernel drops, and tries again only after
seconds, then minutes. A server under test calls with more."""


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
