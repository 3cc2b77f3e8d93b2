"""`flowserver serve` as a process: it starts, prints its address, and shuts down; and every refusal to start."""

import http.client
import json
import re
import shlex
import signal
import socket
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from flowserver import __version__
from flowserver.cli.database_opening import migrate_command, place_of
from flowserver.store.schema.revision import REVISIONS
from flowserver.store.sql.database import Database
from tests.cli.conftest import one_line
from tests.support.server import PATIENCE_SECONDS, ServerProcess

WAIT = "version: v1\ntype: flow\nsteps: [{type: wait, name: w, duration: 3600}]\n"
CALL = "version: v1\ntype: flow\nsteps: [{type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}]\n"
LOG_LINE = re.compile(
    r'\{"time": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "level": "[A-Z]+", "logger": "flowserver[a-z_.]*", '
)


PROCESSES = pytest.mark.parametrize("processes", ["1", "2"])


def _client(server, **options):
    return httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS, **options)


def _shown(url):
    """The description of a database in messages, and the command that migrates it."""
    database = Database(url)
    try:
        return place_of(database), migrate_command(database)
    finally:
        database.close()


def _start_execution(client, definition):
    client.post("/v1/flows", json={"name": "f", "definition": definition}).raise_for_status()
    client.post("/v1/flows/f/executions", json={"name": "e"}).raise_for_status()


@PROCESSES
def test_starts_on_an_empty_machine_and_shuts_down(new_url, processes):
    """In a new Python process, as users start it; other tests need not wait for its imports."""
    with (
        ServerProcess(new_url, "--processes", processes, python=sys.executable) as server,
        _client(server) as client,
    ):
        answer = client.get("/healthz")
        assert answer.status_code == 200
        assert "server" not in answer.headers
        server.stop(signal.SIGINT)
    file = new_url.removeprefix("sqlite:///")
    announcement, log = server.log.splitlines()[:7], server.log.splitlines()[7:]
    assert announcement == [
        f"migrated {file} to revision {REVISIONS[-1]} ({len(REVISIONS)} applied)",
        f"flowserver {__version__} is ready (Ctrl-C stops it)",
        f"  API     {server.url}  (for SDKs; REST is under /v1)",
        f"  Console {server.url}/  (in a browser)",
        f"  Docs    {server.url}/docs",
        f"  Data    {file}",
        "  Access  open to every program on this machine; to close it: flowserver keys create",
    ]
    assert json.loads(log[-1])["message"] == "stopped"
    assert all(LOG_LINE.match(line) for line in log)


@PROCESSES
def test_waiting_clients_are_answered_when_the_server_stops(sqlite_url, processes):
    flags = ("--no-console", "--processes", processes)
    with ServerProcess(sqlite_url, *flags) as server, _client(server) as client:
        _start_execution(client, WAIT)
        poll = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
        poll.request("GET", "/v1/flows/f/executions/e?wait=60")
        with client.stream("GET", "/v1/flows/f/executions/e/events/stream") as stream:
            chunks = stream.iter_text()
            seen = next(chunks)
            server.stop()
            seen += "".join(chunks)
        answer = poll.getresponse()
        assert (answer.status, json.load(answer)["status"]) == (200, "Running")
        poll.close()
    assert seen.count("data: ") == 3
    announcement, log = server.log.splitlines()[:5], server.log.splitlines()[5:]
    assert [line.split()[0] for line in announcement] == ["flowserver", "API", "Docs", "Data", "Access"]
    assert all(LOG_LINE.match(line) for line in log)


@pytest.fixture
def called(sqlite_url, processes):
    """Starts a server with a call of a function that never answers; returns the server during the call."""

    @contextmanager
    def server_that_called(drain_seconds):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.settimeout(PATIENCE_SECONDS)
            function = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/"}
            flags = ("--processes", processes, "--drain-seconds", drain_seconds)
            with ServerProcess(sqlite_url, *flags) as server, _client(server) as client:
                client.put("/v1/functions/s/f", json=function).raise_for_status()
                _start_execution(client, CALL)
                with silent.accept()[0]:
                    yield server

    return server_that_called


@PROCESSES
def test_calls_under_way_delay_the_shutdown_no_longer_than_configured(called):
    with called(drain_seconds="0") as server:
        server.stop()


@PROCESSES
def test_a_caller_of_a_function_learns_that_the_server_stops(sqlite_url, processes):
    """The function was called and may have done its work, so this is not a refusal, which a client
    would simply retry.
    """
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        ServerProcess(sqlite_url, "--processes", processes, "--drain-seconds", "0") as server,
        _client(server) as client,
    ):
        silent.settimeout(PATIENCE_SECONDS)
        client.put("/v1/functions/s/f", json={"url": f"http://127.0.0.1:{silent.getsockname()[1]}/"}).raise_for_status()
        caller = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
        caller.request("POST", "/2016-08-15/services/s/functions/f/invocations", b"{}")
        with silent.accept()[0]:
            server.stop()
        answer = caller.getresponse()
        assert (answer.status, answer.headers["x-fc-error-type"]) == (200, "UnhandledInvocationError")
        assert answer.headers["x-fc-request-id"]
        assert json.load(answer) == {"errorMessage": "s/f was called, but the server stopped before it replied."}
        caller.close()


@PROCESSES
def test_a_second_signal_ends_the_server_at_once(called):
    with called(drain_seconds="3600") as server:
        server.process.terminate()
        server.wait_for_log("stopped answering requests")
        server.process.terminate()
        assert server.process.wait(PATIENCE_SECONDS) == -signal.SIGTERM


@PROCESSES
def test_first_key_closes_the_server(run, sqlite_url, processes):
    with ServerProcess(sqlite_url, "--processes", processes) as server, _client(server) as client:
        token = json.loads(run("keys", "create", "--database-url", sqlite_url, "--format", "json").stdout)[
            "bearerToken"
        ]
        assert client.get("/v1/flows").status_code == 401
        assert client.get("/v1/flows", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert client.get("/", params={"Action": "ListFlows"}).json()["Code"] == "MissingRequiredParams"
        signed = client.get("/", params={"Action": "ListFlows"}, headers={"Authorization": f"Bearer {token}"})
        assert signed.json()["Flows"] == []


def test_other_addresses_need_a_key(run, sqlite_url):
    address = ["--host", "0.0.0.0"]
    result = run("serve", *address, "--database-url", sqlite_url, "--port", "0")
    assert result.exit_code == 4
    assert "refusing to listen on '0.0.0.0' without access keys" in one_line(result)
    run("keys", "create", "--database-url", sqlite_url)
    with ServerProcess(sqlite_url, *address) as server, _client(server) as client:
        assert server.url.startswith("http://127.0.0.1:")
        assert "  Access  with keys only\n" in server.log
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/flows").status_code == 401


def test_database_of_a_running_server(run, sqlite_url):
    with ServerProcess(sqlite_url) as server:
        for migrate in ("--migrate", "--no-migrate"):
            result = run("serve", migrate, "--database-url", sqlite_url, "--port", "0")
            assert result.exit_code == 5
            assert one_line(result).startswith("flowserver: another flowserver uses this database")
        server.kill()
    with ServerProcess(sqlite_url, port=server.port) as again:
        assert again.url == server.url


def test_port_in_use(run, sqlite_url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run("serve", "--port", port, "--database-url", sqlite_url)
    assert result.exit_code == 5
    refusal = f"flowserver: cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert one_line(result) == f"{refusal}; choose another with --port or FLOWSERVER_PORT"


def test_where_the_port_is_in_use_no_database_is_made(run, new_url, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", "--port", taken.getsockname()[1], "--database-url", new_url)
    assert (result.exit_code, "Address already in use" in one_line(result)) == (5, True)
    assert not any((tmp_path / "data").iterdir())


@pytest.mark.parametrize(
    ("url", "words", "exit_code"),
    [
        ("nonsense", "must be sqlite:///FILE or postgresql://", 2),
        (
            "postgresql://user:verysecret@127.0.0.1:1/flows",
            "database postgresql://user:***@127.0.0.1:1/flows refuses",
            4,
        ),
    ],
)
def test_databases_that_cannot_be_used(run, url, words, exit_code):
    result = run("serve", "--database-url", url)
    assert result.exit_code == exit_code
    assert words in one_line(result)
    assert "verysecret" not in result.stderr


def test_no_migration_if_disabled(run, new_url, tmp_path):
    result = run("serve", "--no-migrate", "--database-url", new_url)
    assert result.exit_code == 3
    file = new_url.removeprefix("sqlite:///")
    command = f"flowserver migrate --database-url {new_url}"
    assert one_line(result) == f"flowserver: there is no database {file}; create it: {command}"
    Path(file).touch()
    result = run("serve", "--no-migrate", "--database-url", new_url)
    assert result.exit_code == 5
    assert one_line(result) == f"flowserver: the database {file} is not up to date; run: {command}"


def test_the_command_that_migrates_the_default_database(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "data" / "flowserver.db"
    file.parent.mkdir()
    file.touch()
    message = f"flowserver: the database {file} is not up to date; run: flowserver migrate"
    assert one_line(run("serve", "--no-migrate")) == message
    monkeypatch.setenv("FLOWSERVER_DATABASE_URL", "sqlite:///other.db")
    result = run("serve", "--no-migrate", "--database-url", "sqlite:///data/flowserver.db")
    assert one_line(result) == f"{message} --database-url sqlite:///data/flowserver.db"


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("postgresql://user:verysecret@db:1/flows?sslmode=require", "postgresql://user:***@db:1/flows?sslmode=require"),
        ("postgresql://user@db/flows?password=verysecret&sslpassword=verysecret", "postgresql://user@db/flows"),
    ],
)
def test_no_password_is_shown(place, shown):
    assert _shown(place) == (shown, f"flowserver migrate --database-url {shlex.quote(shown)}")


def test_an_older_database_is_not_migrated_if_disabled(run, database_url):
    """Going back one revision and forth again changes nothing but the number."""
    before, newest = REVISIONS[-2:]
    database = Database(database_url)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :before"), {"before": before})
    result = run("serve", "--database-url", database_url, "--port", "0")
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :newest"), {"newest": newest})
    database.close()
    assert result.exit_code == 5
    place, command = _shown(database_url)
    assert one_line(result) == f"flowserver: the database {place} is not up to date; run: {command}"


@pytest.mark.parametrize("given", ["flag", "variable", "file"])
def test_a_start_that_migrates_reports_it(postgres_url, tmp_path, given):
    (tmp_path / "settings.yaml").write_text("migrate: true\n")
    arguments = {"flag": ["--migrate"], "file": ["--settings", str(tmp_path / "settings.yaml")]}.get(given, [])
    environment = {"FLOWSERVER_MIGRATE": "true"} if given == "variable" else {}
    with ServerProcess(postgres_url, *arguments, environment=environment) as server:
        assert f"to revision {REVISIONS[-1]} ({len(REVISIONS)} applied)\n" in server.log
    with ServerProcess(postgres_url, *arguments, environment=environment) as server:
        assert "to revision" not in server.log


def test_postgresql_is_migrated_only_if_enabled(run, postgres_url):
    result = run("serve", "--database-url", postgres_url)
    assert result.exit_code == 5
    place, command = _shown(postgres_url)
    assert one_line(result) == f"flowserver: the database {place} is not up to date; run: {command}"
    with ServerProcess(postgres_url, "--migrate") as server, _client(server) as client:
        assert client.get("/healthz").status_code == 200
