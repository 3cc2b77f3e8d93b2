"""`flowserver functions`: the registry of a running server, and the program that hosts functions for it."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from flowserver.cli.remote.session import Session
from tests.cli.conftest import one_line
from tests.support.ports import free_port
from tests.support.server import PATIENCE_SECONDS, clean_environment


@pytest.fixture
def functions(run, server):
    return lambda command, *arguments: run("functions", command, *arguments, "--server", server.url)


@pytest.fixture
def answering():
    """The URL of a server that gives one answer to every request."""
    servers = []

    def start(status, content_type, body):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.end_headers()
                self.wfile.write(body)

            do_PUT = do_GET

            def log_message(self, *_):
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_registered_shown_changed_and_deleted(functions):
    url = "http://127.0.0.1:9000/charge"
    put = functions("put", "shop/charge", url, "--timeout-seconds", "30", "--header", "X-Shop: main: 1")
    assert (put.exit_code, put.stdout) == (0, "registered shop/charge\n")
    shown = json.loads(functions("get", "shop/charge", "-o", "json").stdout)
    assert (shown["url"], shown["timeoutSeconds"], shown["headers"]) == (url, 30, {"X-Shop": "(hidden)"})
    functions("put", "shop/charge", f"{url}2")
    assert json.loads(functions("get", "shop/charge", "-o", "json").stdout)["url"] == f"{url}2"
    assert functions("delete", "shop/charge").stdout == "deleted shop/charge\n"
    gone = functions("get", "shop/charge")
    assert gone.exit_code == 3
    assert one_line(gone) == "flowserver: function shop/charge is not registered (FunctionNotExists)"


def test_a_secret_header_comes_from_the_environment(functions, monkeypatch):
    monkeypatch.setenv("CHARGE_TOKEN", "Bearer 1")
    functions("put", "shop/secret", "http://127.0.0.1:9000/", "--header-from-env", "Authorization=CHARGE_TOKEN")
    assert json.loads(functions("get", "shop/secret", "-o", "json").stdout)["headers"] == {"Authorization": "(hidden)"}
    for output in ("table", "json", "yaml", "name"):
        assert "Bearer" not in functions("get", "shop/secret", "-o", output).stdout
        assert "Bearer" not in functions("list", "-o", output).stdout
    functions("delete", "shop/secret")


def test_a_reference_to_a_secret_is_no_secret(functions):
    header = "Authorization: Bearer ${secret:CHARGE_TOKEN}"
    functions("put", "shop/reference", "http://127.0.0.1:9000/", "--header", header)
    shown = json.loads(functions("get", "shop/reference", "-o", "json").stdout)["headers"]
    assert shown == {"Authorization": "Bearer ${secret:CHARGE_TOKEN}"}
    functions("delete", "shop/reference")


def test_functions_without_a_service_in_both_spellings(functions):
    assert functions("put", "-/echo", "--timeout-seconds", "5", "http://127.0.0.1:9000/").exit_code == 0
    for name in ("-/echo", "echo"):
        shown = json.loads(functions("get", name, "-o", "json").stdout)
        assert (shown["service"], shown["function"]) == ("-", "echo")
    assert functions("delete", "-/echo").exit_code == 0
    assert functions("get", "echo").exit_code == 3


def test_hooks_and_limits_are_registered(functions):
    url = "http://127.0.0.1:9000/charge"
    hooks = ("--initialize-url", f"{url}/begin", "--pre-stop-url", f"{url}/stop", "--hook-seconds", "5")
    assert functions("put", "shop/pay", url, *hooks, "--concurrency-max", "4", "--waiting-max", "0").exit_code == 0
    shown = json.loads(functions("get", "shop/pay", "-o", "json").stdout)
    assert (shown["initializeUrl"], shown["preStopUrl"], shown["hookSeconds"]) == (f"{url}/begin", f"{url}/stop", 5)
    assert (shown["concurrencyMax"], shown["waitingMax"]) == (4, 0)
    lines = [" ".join(line.split()) for line in functions("get", "shop/pay").stdout.splitlines()]
    assert lines[:2] == ["function: shop/pay", f"url: {url}"]
    assert {"time for hooks: 5 s", "calls that wait: at most 0"} <= {*lines}
    functions("delete", "shop/pay")


def test_list_shows_every_page(functions, monkeypatch, server):
    assert functions("list").stderr == "No function is registered.\n"
    names = ["plain", *(f"list/f{number}" for number in range(3)), "list.prod/f"]
    for name in names:
        functions("put", name, "http://127.0.0.1:9000/", "--timeout-seconds", "5")
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    listing = functions("list").stdout.splitlines()
    assert [line.split() for line in listing[1:]] == [[name, "5", "s", "http://127.0.0.1:9000/"] for name in names]
    as_json = json.loads(functions("list", "-o", "json").stdout)
    assert [each["service"] for each in as_json] == ["-", "list", "list", "list", "list.prod"]
    for name in names:
        functions("delete", name)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["put", "a/b/c", "http://127.0.0.1:9000/"], 2, "a function is written service/function"),
        (["put", "/b", "http://127.0.0.1:9000/"], 2, "a function is written service/function"),
        (["put", "a/b", "http://127.0.0.1:9000/", "--header", "X-Shop"], 2, "a header is written 'Name: value'"),
        (
            ["put", "a/b", "http://127.0.0.1:9000/", "--header", "authorization: x"],
            2,
            "--header-from-env authorization=",
        ),
        (
            ["put", "a/b", "http://127.0.0.1:9000/", "--header", "authorization: x${secret:A}"],
            2,
            "--header-from-env authorization=",
        ),
        (["put", "a/b", "http://127.0.0.1:9000/", "--header-from-env", "Authorization=NO_SUCH"], 2, "is not set"),
        (["put", "a/b", "ftp://127.0.0.1/"], 1, "(InvalidArgument)"),
        (["put", "a b/c", "http://127.0.0.1:9000/"], 1, "(InvalidArgument)"),
        (["delete", "../b"], 2, "'../b' is not a function's name"),
    ],
)
def test_refusals_are_one_line(functions, arguments, exit_code, words):
    result = functions(*arguments)
    assert result.exit_code == exit_code
    assert words in result.stderr.splitlines()[-1]


def test_server_with_keys(run, sqlite_url, answering, monkeypatch):
    refusing = answering(401, "application/problem+json", b'{"code": "Unauthenticated", "detail": "no token"}')
    result = run("functions", "list", "--server", refusing)
    assert result.exit_code == 4
    assert one_line(result).startswith("flowserver: the server has access keys: set FLOWSERVER_TOKEN")
    monkeypatch.setenv("FLOWSERVER_TOKEN", "old")
    assert one_line(run("functions", "list", "--server", refusing)) == "flowserver: no token (Unauthenticated)"


def test_a_variable_may_name_the_file_of_a_token(run, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv("FLOWSERVER_TOKEN", f"@{tmp_path / 'token'}")
    assert Session({}).token == "secret"
    monkeypatch.setenv("FLOWSERVER_TOKEN", f"@{tmp_path / 'nothing'}")
    result = run("functions", "list")
    assert (result.exit_code, one_line(result)) == (3, f"flowserver: {tmp_path / 'nothing'}: No such file or directory")


@pytest.mark.parametrize(
    ("status", "content_type", "body", "words", "exit_code"),
    [
        (200, "text/html", b"<html>", "is not a flowserver", 4),
        (200, "application/json", b"[]", "is not a flowserver", 4),
        (502, "text/html", b"<html>", "the server answered 502", 4),
        (404, "application/json", b'{"detail": 1}', "the server answered 404", 3),
    ],
)
def test_another_program_answers(run, answering, status, content_type, body, words, exit_code):
    result = run("functions", "list", "--server", answering(status, content_type, body))
    assert result.exit_code == exit_code
    assert words in one_line(result)


@pytest.mark.parametrize(
    ("url", "exit_code"),
    [
        ("http://127.0.0.1:1", 4),
        ("nonsense", 2),
        ("127.0.0.1:8080", 2),
        ("http://[::1", 2),
        ("ftp://127.0.0.1", 2),
        ("http://", 2),
        ("http://127.0.0.1:99999", 2),
    ],
)
def test_no_server_answers(run, url, exit_code):
    result = run("functions", "list", "--server", url)
    assert result.exit_code == exit_code
    assert url in one_line(result)


@pytest.mark.parametrize("command", [["list"], ["get", "a/b"], ["serve", "functions.yaml"]])
def test_a_variable_that_is_not_a_url(run, monkeypatch, tmp_path, command):
    (tmp_path / "functions.yaml").write_text("functions: {a/b: index.py:handler}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOWSERVER_URL", "nonsense")
    result = run("functions", *command)
    assert result.exit_code == 2
    assert one_line(result).endswith("must be a URL such as http://HOST:PORT, not 'nonsense'")


def test_token_that_is_not_valid_in_a_header(run, server, tmp_path):
    token = tmp_path / "token"
    token.write_text("fls_\N{EURO SIGN}\n")
    result = run("functions", "list", "--server", server.url, "--token", f"@{token}")
    assert result.exit_code == 2
    assert "\N{EURO SIGN}" not in one_line(result)


def test_hosting_a_file(functions, server, tmp_path):
    (tmp_path / "index.py").write_text("def handler(event, context):\n    return event\n")
    (tmp_path / "functions.yaml").write_text("functions: {hosted/echo: index.py:handler}")
    listen = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "flowserver", "functions", "serve", str(tmp_path / "functions.yaml")]
    environment = clean_environment() | {"FLOWSERVER_URL": server.url}
    with subprocess.Popen(
        [*command, "--listen", listen], env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as hosting:
        assert any(line == f"Registered with {server.url}.\n" for line in hosting.stdout)
        assert json.loads(functions("get", "hosted/echo", "-o", "json").stdout)["url"] == f"http://{listen}/hosted/echo"
        hosting.terminate()
        assert hosting.wait(PATIENCE_SECONDS) == 0


@pytest.fixture
def hosted_file(tmp_path):
    """Writes a file of one function, with this further line."""
    (tmp_path / "index.py").write_text("def handler(event, context):\n    return event\n")

    def write(line=""):
        file = tmp_path / "functions.yaml"
        file.write_text(f"listen: 127.0.0.1:0\n{line}\nfunctions: {{hosted/echo: index.py:handler}}")
        return file

    return write


REFUSAL = "flowserver: the server refused PUT /v1/functions/hosted/echo: the reason (TheCode)"


@pytest.mark.parametrize("named", ["", "server: "])
def test_hosting_without_a_named_server_registers_with_the_default(run, answering, monkeypatch, hosted_file, named):
    refusing = answering(403, "application/json", b'{"detail": "the reason", "code": "TheCode"}')
    monkeypatch.setattr("flowserver.cli.remote.session.SERVER_DEFAULT", refusing)
    result = run("functions", "serve", hosted_file(named))
    assert result.exit_code == 4
    assert result.stderr.splitlines()[-1] == REFUSAL


@pytest.mark.parametrize("where", ["in use", "option", "file", "variable"])
def test_hosting_registers_with_the_context_in_use_unless_the_file_names_a_server(
    run, answering, monkeypatch, hosted_file, tmp_path, where
):
    refusing = answering(403, "application/json", b'{"detail": "the reason", "code": "TheCode"}')
    wrong = answering(403, "application/json", b'{"detail": "wrong server"}')
    run("context", "set", "other", "--server", refusing if where == "in use" else wrong)
    run("context", "set", "here", "--server", refusing)
    options = ("--context", "here") if where == "option" else ()
    if where == "variable":
        monkeypatch.setenv("FLOWSERVER_CONTEXT", "here")
    servers = {"in use": "", "file": f"server: {refusing}"}
    result = run("functions", "serve", hosted_file(servers.get(where, f"server: {wrong}")), *options)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (4, REFUSAL)


def test_the_token_of_a_context_is_not_sent_to_the_server_of_a_file(run, answering, hosted_file, tmp_path):
    (tmp_path / "token").write_text("fls_secret")
    run("context", "set", "here", "--server", "http://127.0.0.1:1", "--token", f"@{tmp_path}/token")
    refusing = answering(401, "application/json", b'{"detail": "who are you?"}')
    result = run("functions", "serve", hosted_file(f"server: {refusing}"))
    assert "the server has access keys: set FLOWSERVER_TOKEN" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", ["list", "put", "get", "delete", "serve"])
def test_every_command_has_the_same_default_server(run, command):
    text = " ".join(run("functions", command, "--help").stdout.split())
    assert "default: http://127.0.0.1:8080" in text


def test_hosting_a_file_that_does_not_exist(tmp_path):
    command = [sys.executable, "-m", "flowserver", "functions", "serve", str(tmp_path / "absent.yaml")]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", env=clean_environment())
    assert result.returncode == 3
    message = f"flowserver: {tmp_path / 'absent.yaml'} cannot be read: No such file or directory\n"
    assert (result.stdout, result.stderr) == ("", message)
