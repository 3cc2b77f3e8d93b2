"""How the blocking client sends its requests: a transport of httpx on the standard library's `http.client`.

httpx imports `http.client` anyway. Its own transport would import httpcore and h11 as well, which takes an eighth of
the time of a whole command, and more for each request.
"""

import select
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final

import httpx

CHUNK_BYTES: Final = 65_536
"""Read at once, at most."""


class BlockingTransport(httpx.BaseTransport):
    """Sends the requests of one thread to one server. Raises what httpx raises.

    A connection whose answer was read to its end is kept for a further request. `context` says whom to trust if the
    server speaks TLS.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._idle: list[HTTPConnection] = []
        """As many as answers were read at the same time."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the content of the answer is a stream."""
        seconds: dict[str, float] = request.extensions["timeout"]
        connection = self._take() or self._connect(request, seconds["connect"])
        try:
            with _errors_of_httpx(request):
                connection.sock.settimeout(seconds["read"])
                _send(connection, request)
                answer = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.getheaders()]
        content = _Content(request, connection, answer, self._idle)
        return httpx.Response(answer.status, headers=headers, stream=content, request=request)

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> HTTPConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not _has_news(connection):
                return connection
            connection.close()  # as the server did
        return None

    def _connect(self, request: httpx.Request, seconds: float) -> HTTPConnection:
        host, port = request.url.raw_host.decode("ascii"), request.url.port
        connection = (
            HTTPConnection(host, port or 80, timeout=seconds)
            if self._context is None
            else HTTPSConnection(host, port or 443, timeout=seconds, context=self._context)
        )
        try:
            connection.connect()
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error), request=request) from error
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(str(error), request=request) from error
        return connection


class _Content(httpx.SyncByteStream):
    """The content of an answer, as it comes in."""

    def __init__(
        self, request: httpx.Request, connection: HTTPConnection, answer: HTTPResponse, idle: list[HTTPConnection]
    ) -> None:
        self._request = request
        self._connection = connection
        self._answer = answer
        self._idle = idle
        self._is_complete = False

    def __iter__(self) -> Iterator[bytes]:
        with _errors_of_httpx(self._request):
            while chunk := self._answer.read1(CHUNK_BYTES):
                yield chunk
            if self._answer.length:
                raise httpx.RemoteProtocolError("the answer ends too early", request=self._request)
        self._is_complete = True

    def close(self) -> None:
        """Keep the connection if the answer was read to its end."""
        self._answer.close()
        if self._is_complete and not self._answer.will_close:
            self._idle.append(self._connection)
        else:
            self._connection.close()


def _send(connection: HTTPConnection, request: httpx.Request) -> None:
    target = request.url.raw_path.decode("ascii")
    connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
    for name, value in request.headers.raw:
        connection.putheader(name, value)
    with suppress(BrokenPipeError, ConnectionResetError):  # a server that refuses a long body has answered already
        connection.endheaders(request.read() or None)


def _has_news(connection: HTTPConnection) -> bool:
    """Whether an idle connection has anything to read: most often that the server has closed it."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def _errors_of_httpx(request: httpx.Request) -> Iterator[None]:
    """Inside, what `http.client` raises is raised as httpx does."""
    try:
        yield
    except TimeoutError as error:
        raise httpx.ReadTimeout(str(error), request=request) from error
    except OSError as error:
        raise httpx.ReadError(str(error), request=request) from error
    except (HTTPException, ValueError) as error:
        raise httpx.RemoteProtocolError(str(error) or type(error).__name__, request=request) from error
