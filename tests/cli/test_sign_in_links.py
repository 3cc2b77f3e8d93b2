"""Sign-in links: of `keys create --sign-in-link`, and of `serve` on a terminal while there is no key."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from flowserver.cli.exit_codes import ExitCode
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment
from tests.support.terminal import CTRL_C, Terminal

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/sign-in#(flc_[\w-]{43})\n")


def redeem(server_url: str, code: str) -> httpx.Response:
    return httpx.post(
        f"{server_url}/v1/sign-ins",
        headers={"Authorization": f"Bearer {code}"},
        trust_env=False,
        timeout=PATIENCE_SECONDS,
    )


def serving(url, *options):
    return Terminal(["serve", "--port", "0", "--database-url", url, *options], clean_environment())


def test_a_command_makes_a_link_and_no_key(run, sqlite_url, monkeypatch):
    monkeypatch.setenv("FLOWSERVER_URL", "https://flows.example/ops/")
    options = ("--database-url", sqlite_url, "--label", "ann", "--role", "viewer", "--sign-in-link")
    made = run("keys", "create", *options)
    assert made.exit_code == 0
    assert re.fullmatch(r"https://flows\.example/ops/sign-in#flc_[\w-]{43}\n", made.stdout)
    assert "It works once, until" in made.stderr
    assert "The link makes the first key" in made.stderr
    shown = json.loads(run("keys", "create", *options, "--server", "http://[::1]:9000", "-o", "json").stdout)
    assert shown["signInLink"].startswith("http://[::1]:9000/sign-in#flc_")
    left = datetime.fromisoformat(shown["expiresTime"]) - datetime.now(UTC)
    assert timedelta(minutes=10) < left <= timedelta(minutes=15)
    assert json.loads(run("keys", "list", "--database-url", sqlite_url, "-o", "json").stdout) == []
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        stored = "\n".join(connection.iterdump())
        recorded = connection.execute("SELECT operation, api, result FROM audit_records").fetchall()
    assert recorded == [("keys.link", "CLI", "ok")] * 2
    assert shown["signInLink"].partition("#")[2][4:] not in stored
    refused = run("keys", "create", *options, "--server", "flows.example")
    assert (refused.exit_code, "not a URL" in refused.stderr) == (ExitCode.USAGE, True)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_open_server_shows_a_link_on_a_terminal_and_each_works_until_one_is_used(sqlite_url, processes):
    with serving(sqlite_url, "--processes", processes) as terminal:
        terminal.read_until("Sign in")
        terminal.read_until("first access key)")
        _, earlier = LINK.search(terminal.text).groups()
        terminal.press(CTRL_C)
        assert terminal.read_to_the_end() == 0
    with serving(sqlite_url, "--processes", processes) as terminal:
        terminal.read_until("first access key)")
        server, later = LINK.search(terminal.text).groups()
        made = redeem(server, earlier)  # it outlives the server that showed it
        assert (made.status_code, made.json()["role"]) == (201, "admin")
        bearer = {"Authorization": f"Bearer {made.json()['bearerToken']}"}
        with httpx.Client(base_url=server, trust_env=False, timeout=PATIENCE_SECONDS) as client:
            assert client.get("/v1/flows").status_code == 401
            assert client.get("/v1/flows", headers=bearer).status_code == 200
            assert client.get("/?Action=ListFlows", headers=bearer).status_code == 200
        for code in (earlier, later):
            assert redeem(server, code).status_code == 401
    with serving(sqlite_url) as terminal:
        terminal.read_until("Access")
        terminal.press(CTRL_C)
        terminal.read_to_the_end()
        assert "/sign-in#" not in terminal.text


@pytest.mark.parametrize("options", [["--no-console"], ["--log-format", "json"]])
def test_no_link_is_shown_without_a_console_or_into_a_log(sqlite_url, options):
    with serving(sqlite_url, *options) as terminal:
        terminal.read_until("ready")
        terminal.press(CTRL_C)
        terminal.read_to_the_end()
        assert "sign-in" not in terminal.text
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        assert connection.execute("SELECT count(*) FROM sign_in_links").fetchone() == (0,)


def test_without_a_terminal_no_link_is_shown(sqlite_url):
    with ServerProcess(sqlite_url, "--log-format", "human") as server:
        assert "Access" in server.log
        assert "sign-in" not in server.log


def test_a_server_starts_without_a_link_if_its_database_takes_no_changes(sqlite_url):
    file = sqlite_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON sign_in_links BEGIN SELECT raise(ABORT, 'the disk is full'); END"
        )
        connection.commit()
    with serving(sqlite_url) as terminal:
        terminal.read_until("Access")
        terminal.press(CTRL_C)
        assert terminal.read_to_the_end() == 0
        assert "there is no sign-in link: the database refuses: the disk is full" in terminal.text


def test_a_restored_backup_has_no_links(run, sqlite_url, tmp_path):
    """A link that was used after the backup would work again."""
    link = run("keys", "create", "--sign-in-link", "--database-url", sqlite_url).stdout.strip()
    backup = tmp_path / "backup.db"
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("VACUUM INTO ?", [str(backup)])
    assert run("restore", backup, "--database-url", sqlite_url).exit_code == 0
    with ServerProcess(sqlite_url) as server:
        assert redeem(server.url, link.partition("#")[2]).status_code == 401
