"""The program as a process: binds, registers, serves, stops; and every way it can refuse to start."""

import json
import queue
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler

import httpx
import pytest

from flowserver.base.urls import base_url
from flowserver.hosting.errors import HostingError
from flowserver.hosting.registration import register
from flowserver.hosting.serving import bind
from tests.hosting.tutorial_handlers import ECHO
from tests.support.threading_server import ThreadingServer

PROGRAM = """
import sys
from pathlib import Path
from flowserver.hosting.serving import Choices, run
server, token, listen, advertise, secret = (argument or None for argument in sys.argv[2:])
sys.exit(run(Path(sys.argv[1]), Choices(server, listen, advertise, token, secret)))
"""
WAIT_SECONDS = 30


class Registry:
    """A flowserver that only takes registrations."""

    def __init__(self):
        self.registered = queue.Queue()
        self.status = 200
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                registry.registered.put((self.path, body, self.headers.get("Authorization")))
                self.send_response(registry.status)
                self.end_headers()
                self.wfile.write(b'{"detail": "the reason"}')

            def log_message(self, *_):
                pass

        self.server = ThreadingServer(Handler)
        self.url = self.server.url
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def registry():
    it = Registry()
    yield it
    it.server.shutdown()
    it.server.server_close()


@pytest.fixture
def host_file(tmp_path):
    (tmp_path / "index.py").write_text(ECHO)
    path = tmp_path / "functions.yaml"
    path.write_text("functions: {fnf-demo/echo: {handler: index.py:handler, timeoutSeconds: 9}}")
    return path


@pytest.fixture
def start(host_file):
    processes = []

    def start_program(server="", token="", listen="127.0.0.1:0", advertise="", secret=""):
        command = [sys.executable, "-c", PROGRAM, str(host_file), server, token, listen, advertise, secret]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        processes.append(process)
        return process

    yield start_program
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_registers_serves_and_stops(start, registry, stop):
    process = start(registry.url, "secret-token")
    path, body, authorization = registry.registered.get(timeout=WAIT_SECONDS)
    assert (path, authorization) == ("/v1/functions/fnf-demo/echo", "Bearer secret-token")
    assert body["timeoutSeconds"] == 9
    assert httpx.post(body["url"], content=b'{"a": 1}', trust_env=False).content == b'{"a": 1}'
    process.send_signal(stop)
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert f"POST {body['url']} -> index.handler" in output
    assert f"Registered with {registry.url}." in output
    assert "FC Invoke Start RequestId: " in output
    assert "Traceback" not in output
    assert "secret-token" not in output


def test_serves_without_a_server(start):
    process = start()
    url = process.stdout.readline().split()[1]
    assert "not registered" in process.stdout.readline()
    assert httpx.post(url, content=b"x", trust_env=False).content == b"x"
    process.terminate()
    assert process.wait(WAIT_SECONDS) == 0


def test_no_web_page_can_run_a_function(start):
    process = start()
    url = process.stdout.readline().split()[1]
    for foreign in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        reply = httpx.post(url, content=b"x", headers=foreign, trust_env=False)
        assert (reply.status_code, reply.json()["ErrorCode"]) == (403, "AccessDenied")
    process.terminate()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert "FC Invoke Start" not in output


WIDE = "0.0.0.0:0"
ADVERTISED = "http://functions.example:9100"


def test_beyond_loopback_a_secret_is_needed(start, registry):
    for process in (start(registry.url, listen=WIDE), start(registry.url, listen=WIDE, advertise=ADVERTISED)):
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 1
        assert "refusing to listen on 0.0.0.0 without a secret" in output
        assert "FUNCTIONS_SECRET" in output
    assert registry.registered.empty()


def test_on_every_address_it_must_be_said_which_to_register(start, registry):
    output, _ = start(registry.url, listen=WIDE, secret="s" * 20).communicate(timeout=WAIT_SECONDS)
    assert "say where the server reaches this program, with --advertise" in output
    assert registry.registered.empty()


def test_beyond_loopback_only_those_who_know_the_secret_run_functions(start, registry):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = start(registry.url, listen=f"0.0.0.0:{port}", advertise=f"{ADVERTISED}/", secret="s" * 20)
    _, body, _ = registry.registered.get(timeout=WAIT_SECONDS)
    assert body["url"] == f"{ADVERTISED}/fnf-demo/echo"
    assert body["headers"] == {"Authorization": f"Bearer {'s' * 20}"}
    url = f"http://127.0.0.1:{port}/fnf-demo/echo"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s" * 20}):
        for path in ("", "/initialize"):
            reply = httpx.post(url + path, content=b"x", headers=headers, trust_env=False)
            assert (reply.status_code, reply.json()["ErrorCode"]) == (403, "AccessDenied")
    assert httpx.post(url, content=b"x", headers=body["headers"], trust_env=False).content == b"x"
    process.terminate()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert output.count("FC Invoke Start") == 1
    assert "s" * 20 not in output


def test_a_body_has_a_bound(start):
    process = start()
    url = process.stdout.readline().split()[1]
    reply = httpx.post(url, content=b"x" * 6_291_457, trust_env=False)
    assert (reply.status_code, "EntityTooLarge" in reply.text) == (400, True), reply.text
    with socket.create_connection(("127.0.0.1", httpx.URL(url).port), WAIT_SECONDS) as client:
        client.sendall(b"POST / HTTP/1.1\r\nx: " + b"v" * 70_000 + b"\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 431 ")
    process.terminate()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert "FC Invoke Start" not in output


def test_stops_while_the_server_does_not_answer(start):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = start(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with silent.accept()[0]:
            process.terminate()
            output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in output


def test_server_that_refuses(start, registry):
    registry.status = 403
    process = start(registry.url)
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert 'the server refused PUT /v1/functions/fnf-demo/echo: 403 {"detail": "the reason"}' in output
    assert "Traceback" not in output


def test_server_with_keys_that_is_given_no_token(start, registry):
    registry.status = 401
    process = start(registry.url)
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert "set FLOWSERVER_TOKEN or --token" in output


def test_mistake_in_the_file(start, host_file):
    host_file.write_text("function: {}")
    process = start()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert "function: unknown key" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("listen", ["9100", "localhost:", ":", "localhost:x", "a:99999", "[::1"])
def test_listen_of_the_wrong_form(listen):
    with pytest.raises(HostingError, match="listen must be host:port"):
        bind(listen)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9100"),
        ("0.0.0.0", "http://127.0.0.1:9100"),
        ("192.168.1.2", "http://192.168.1.2:9100"),
        ("::1", "http://[::1]:9100"),
        ("::", "http://[::1]:9100"),
    ],
)
def test_address_that_is_registered(host, url):
    assert base_url(host, 9100) == url


def test_port_in_use():
    with bind("127.0.0.1:0") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostingError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            bind(f"127.0.0.1:{port}")


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "127.0.0.1:1", "http://[::1", "ftp://127.0.0.1"])
async def test_server_that_cannot_be_reached(host, server):
    hosted = host({"index.py": ECHO}, {"s/f": "index.py:handler"})
    with pytest.raises(HostingError, match="cannot be reached"):
        await register(hosted, "http://127.0.0.1:9100", server, connect_retries=0)


async def test_hooks_and_places_are_registered(host, registry):
    files = {"m.py": "def handler(e, c): ...\ndef hook(c): ..."}
    entry = {"handler": "m.py:handler", "initializer": "m.py:hook", "preStop": "m.py:hook"}
    places = {"hookSeconds": 7, "concurrencyMax": 2, "waitingMax": 0}
    await register(host(files, {"s/f": entry | places}), "http://127.0.0.1:9100", registry.url)
    _, body, _ = registry.registered.get(timeout=WAIT_SECONDS)
    assert body == {
        "url": "http://127.0.0.1:9100/s/f",
        "timeoutSeconds": 60,
        "initializeUrl": "http://127.0.0.1:9100/s/f/initialize",
        "preStopUrl": "http://127.0.0.1:9100/s/f/pre-stop",
        **places,
    }
