"""The program as a process: binds, registers, serves, stops; and every refusal to start."""

import json
import queue
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler

import httpx
import pytest

from flowserver.base.urls import base_url
from flowserver.hosting.errors import HostingConflict, HostingMissing, HostingMistake, HostingUnreachable
from flowserver.hosting.logs import plain
from flowserver.hosting.registration import register
from flowserver.hosting.serving import bind
from tests.hosting.tutorial_handlers import ECHO
from tests.support.ports import free_port
from tests.support.server import clean_environment, start_flowserver
from tests.support.threading_server import ThreadingServer

WAIT_SECONDS = 60


class Registry:
    """A flowserver that only accepts registrations."""

    def __init__(self):
        self.registered = queue.Queue()
        self.status = 200
        self.answer = b'{"service": "s", "function": "f", "url": "http://127.0.0.1:9100/s/f"}'
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                registry.registered.put((self.path, body, self.headers.get("Authorization")))
                self.send_response(registry.status)
                self.end_headers()
                self.wfile.write(registry.answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingServer(Handler)
        self.url = self.server.url
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


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
        given = {"server": server, "token": token, "listen": listen, "advertise": advertise, "secret": secret}
        for name in ("token", "secret"):
            if given[name]:
                (host_file.parent / name).write_text(given[name])
                given[name] = f"@{host_file.parent / name}"
        options = [part for name, value in given.items() if value for part in (f"--{name}", value)]
        if not server:
            options.append("--no-register")
        environment = clean_environment() | {"PYTHONUNBUFFERED": "1"}
        process = start_flowserver(["functions", "serve", str(host_file), *options], environment)
        processes.append(process)
        return process

    yield start_program
    for process in processes:
        process.kill()
        process.communicate(timeout=WAIT_SECONDS)


def last_line(process, returncode):
    """The last output of a program that ended with this code."""
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == returncode, output
    assert "Traceback" not in output
    return output.splitlines()[-1]


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
    assert process.stdout.readline() == "Not registered with a server, because of --no-register.\n"
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
        said = last_line(process, 2)
        assert said.startswith("flowserver: refusing to listen on 0.0.0.0 without a secret")
        assert "FUNCTIONS_SECRET" in said
    assert registry.registered.empty()


def test_on_every_address_without_a_server(start):
    process = start(listen=WIDE, secret="s" * 20)
    assert process.stdout.readline().startswith("POST http://127.0.0.1:")


def test_on_every_address_the_advertised_url_is_required(start, registry):
    said = last_line(start(registry.url, listen=WIDE, secret="s" * 20), 2)
    assert said.startswith("flowserver: 0.0.0.0 is every address: say where")
    assert said.endswith("with --advertise http://HOST:PORT")
    assert registry.registered.empty()


@pytest.mark.parametrize("advertise", ["functions:9100", "ftp://functions", "http://", "http://[::1", "http://f:99999"])
def test_the_advertised_address_must_be_a_url(start, registry, advertise):
    said = last_line(start(registry.url, advertise=advertise), 2)
    assert said == f"flowserver: --advertise must be a URL such as http://HOST:PORT, not {advertise!r}"
    assert registry.registered.empty()


def test_beyond_loopback_the_secret_is_needed_to_run_functions(start, registry):
    port = free_port()
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


def test_the_size_of_a_body_is_limited(start):
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


@pytest.mark.parametrize(
    ("status", "answer", "returncode", "reason"),
    [
        (403, b'{"detail": "the reason", "code": "TheCode"}', 4, "the reason (TheCode)"),
        (400, b'{"message": "the reason"}', 4, "the reason"),
        (409, b'{"detail": "the reason", "code": "TheCode"}', 5, "the reason (TheCode)"),
        (502, b"<html>", 4, "the server answered 502"),
        (500, b"[1]", 4, "the server answered 500"),
    ],
)
def test_server_that_refuses(start, registry, status, answer, returncode, reason):
    registry.status, registry.answer = status, answer
    said = last_line(start(registry.url), returncode)
    assert said == f"flowserver: the server refused PUT /v1/functions/fnf-demo/echo: {reason}"


def test_server_that_disconnects(start):
    """Unlike a server that is not up yet, it is not tried again."""
    with socket.create_server(("127.0.0.1", 0)) as breaking:
        url = base_url(*breaking.getsockname())
        process = start(url)
        breaking.accept()[0].close()
        assert last_line(process, 4).startswith(f"flowserver: the server at {url} cannot be reached: ")


def test_server_with_keys_and_no_token(start, registry):
    registry.status, registry.answer = 401, b'{"detail": "the reason", "code": "TheCode"}'
    assert "set FLOWSERVER_TOKEN, or --token @FILE" in last_line(start(registry.url), 4)
    assert last_line(start(registry.url, token="old"), 4).endswith(": the reason (TheCode)")


def test_error_in_the_file(start, host_file):
    host_file.write_text("function: {}")
    said = last_line(start(), 2)
    assert said.startswith(f"flowserver: {host_file} is not valid: ")
    assert "`function` is unknown; did you mean `functions`?" in said


def test_handler_that_cannot_be_used(start, host_file):
    (host_file.parent / "index.py").write_text("def other(event, context): ...")
    assert last_line(start(), 2).endswith("index.py defines no function handler")
    (host_file.parent / "index.py").write_text("1 / 0")
    assert last_line(start(), 1).endswith("index.py cannot be loaded: ZeroDivisionError: division by zero")
    (host_file.parent / "index.py").unlink()
    assert last_line(start(), 3).startswith("flowserver: fnf-demo/echo: there is no file ")


def test_port_that_is_in_use(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        said = last_line(start(listen=listen), 5)
    assert said.startswith(f"flowserver: cannot listen on {listen}: Address already in use; choose another")


@pytest.mark.parametrize(
    "listen", ["9100", "localhost:", ":", "localhost:x", "a:99999", "[::1", "\N{SNOWMAN}" * 64 + ":1"]
)
def test_listen_of_the_wrong_form(listen):
    with pytest.raises(HostingMistake, match="listen must be host:port"):
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
        with pytest.raises(HostingConflict, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            bind(f"127.0.0.1:{port}")


@pytest.mark.parametrize("listen", ["192.0.2.1:0", "nosuch.invalid:0"])
def test_address_that_this_machine_does_not_have(listen):
    with pytest.raises(HostingMissing, match=f"cannot listen on {listen}: (?!Unknown error)"):
        bind(listen)


async def test_server_that_cannot_be_reached(host):
    hosted = host({"index.py": ECHO}, {"s/f": "index.py:handler"})
    with pytest.raises(HostingUnreachable, match="cannot be reached"):
        await register(hosted, "http://127.0.0.1:9100", "http://127.0.0.1:1", connect_retries=0)


@pytest.mark.parametrize("server", ["nonsense", "127.0.0.1:1", "http://[::1", "ftp://127.0.0.1"])
async def test_server_that_is_not_a_url(host, server):
    hosted = host({"index.py": ECHO}, {"s/f": "index.py:handler"})
    with pytest.raises(HostingMistake, match="--server must be a URL"):
        await register(hosted, "http://127.0.0.1:9100", server, connect_retries=0)


async def test_token_that_is_not_valid_in_a_header(host):
    hosted = host({"index.py": ECHO}, {"s/f": "index.py:handler"})
    with pytest.raises(HostingMistake) as refusal:
        await register(hosted, "http://127.0.0.1:9100", "http://127.0.0.1:1", "fls_\N{EURO SIGN}", connect_retries=0)
    assert "\N{EURO SIGN}" not in str(refusal.value)


async def test_it_reports_that_it_waits_for_the_server(host, monkeypatch, caplog):
    monkeypatch.setattr("flowserver.hosting.registration.PAUSE_SECONDS", 0)
    monkeypatch.setattr(plain, "handlers", [caplog.handler])
    monkeypatch.setattr(plain, "propagate", False)
    caplog.set_level("INFO", plain.name)
    hosted = host({"index.py": ECHO}, {"s/f": "index.py:handler"})
    with pytest.raises(HostingUnreachable):
        await register(hosted, "http://127.0.0.1:9100", "http://127.0.0.1:1", connect_retries=3)
    (said,) = caplog.messages
    assert said.startswith("Waiting for the server: the server at http://127.0.0.1:1 cannot be reached")


async def test_hooks_and_limits_are_registered(host, registry):
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
