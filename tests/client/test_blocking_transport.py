"""The connections of the blocking client: kept, replaced, and what is raised when they break."""

import socket
import threading
from contextlib import contextmanager

import httpx
import pytest

from flowserver.client.blocking_transport import BlockingTransport

LENGTH = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok"


class Server:
    """Answers each connection with the next list of answers, one per request, and closes it then."""

    def __init__(self, *connections: list[bytes]) -> None:
        self.requests: list[bytes] = []
        self.accepted = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._connections = connections
        self._threads: list[threading.Thread] = []

    def run(self) -> None:
        for answers in self._connections:
            connection, _ = self._listener.accept()
            self.accepted += 1
            self._threads.append(threading.Thread(target=self._serve, args=(connection, answers)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket, answers: list[bytes]) -> None:
        with connection, connection.makefile("rb") as reader:
            for answer in answers:
                head = b"".join(iter(reader.readline, b"\r\n"))
                self.requests.append(head)
                if b"413" not in answer:
                    reader.read(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0))
                connection.sendall(answer)

    def close(self) -> None:
        for thread in self._threads:
            thread.join()
        self._listener.close()


@contextmanager
def serving(*connections: list[bytes]):
    server = Server(*connections)
    thread = threading.Thread(target=server.run)
    thread.start()
    with httpx.Client(base_url=server.url, transport=BlockingTransport(None), timeout=10, trust_env=False) as client:
        yield server, client
    thread.join()
    server.close()


def test_a_connection_is_kept_when_its_answer_was_read():
    with serving([LENGTH, CHUNKED, EMPTY, LENGTH]) as (server, client):
        answers = [client.get("/a b?c=d"), client.post("/", content=b"body"), client.delete("/"), client.get("/")]
        assert [(each.status_code, each.text) for each in answers] == [(200, "ok"), (200, "ok"), (204, ""), (200, "ok")]
        assert server.accepted == 1
    assert server.requests[0].startswith(b"GET /a%20b?c=d HTTP/1.1\r\n")
    assert server.requests[0].lower().count(b"\r\nhost: 127.0.0.1:") == 1
    assert server.requests[1].lower().count(b"content-length: 4\r\n") == 1


def test_a_connection_that_the_server_closes_is_replaced():
    with serving([LAST], [LENGTH], [LENGTH]) as (server, client):
        assert [client.get("/").text for _ in range(2)] == ["ok", "ok"]
        (kept,) = client._transport._idle
        kept.sock.recv(1, socket.MSG_PEEK)  # returns when the server has closed it
        assert client.get("/").text == "ok"
        assert server.accepted == 3


def test_a_connection_whose_answer_is_being_read_is_not_used():
    with serving([CHUNKED], [LENGTH]) as (server, client), client.stream("GET", "/") as streamed:
        assert client.get("/").text == "ok"
        assert streamed.read() == b"ok"
        assert server.accepted == 2


def test_a_connection_whose_answer_was_not_read_is_closed():
    with serving([CHUNKED], [LENGTH]) as (server, client):
        with client.stream("GET", "/"):
            pass
        assert client.get("/").text == "ok"
        assert server.accepted == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\nok",
    ],
)
def test_a_broken_answer_is_an_error_of_httpx(answer):
    with serving([answer], [LENGTH]) as (_, client):
        with pytest.raises(httpx.TransportError):
            client.get("/")
        assert client.get("/").text == "ok"


def test_a_silent_server_is_a_timeout():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        httpx.Client(transport=BlockingTransport(None)) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.get(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.01)


def test_a_refusal_is_read_though_the_body_was_not():
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"
    with serving([refusal]) as (_, client):
        try:
            answer = client.post("/", content=b"x" * 20_000_000)
        except httpx.ReadError:  # the system has thrown the answer away with the connection
            return
        assert answer.status_code == 413


def test_no_server_is_a_connection_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with httpx.Client(transport=BlockingTransport(None)) as client:
        for url in (f"http://127.0.0.1:{port}", f"http://[::1]:{port}", f"http://{'a' * 70}.test"):
            with pytest.raises(httpx.ConnectError):
                client.get(url)
