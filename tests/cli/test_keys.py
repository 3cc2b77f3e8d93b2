"""`flowserver keys`: shown once, stored as the server looks them up, disabled permanently."""

import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timedelta

import pytest
from sqlalchemy import delete

from flowserver.store.access_keys import find_access_key, find_key_by_token, token_digest
from flowserver.store.schema.tables import access_keys
from tests.cli.conftest import one_line


@pytest.fixture
def keys(run, sqlite_url):
    return lambda command, *arguments: run("keys", command, "--database-url", sqlite_url, *arguments)


def test_a_created_key_is_shown_and_works(keys, sqlite_database):
    result = keys("create", "--label", "my laptop")
    assert result.exit_code == 0
    shown = dict(line.split(":", 1) for line in result.stdout.splitlines())
    key_id, secret, token = (shown[name].strip() for name in ("access key id", "secret", "bearer token"))
    assert "first key" in result.stderr
    by_id = sqlite_database.run_read(lambda connection: find_access_key(connection, key_id, 0))
    assert (by_id.secret, by_id.label, by_id.role, by_id.flows) == (secret, "my laptop", "admin", "")
    assert sqlite_database.run_read(lambda connection: find_key_by_token(connection, token_digest(token), 0)) == by_id


def test_a_key_has_a_role_and_flows_and_an_end(keys, sqlite_database):
    options = ("--role", "starter", "--flows", "order-", "--label", "shop")
    created = json.loads(keys("create", *options, "--expires", "90d", "-o", "json").stdout)
    key_id = created["accessKeyId"]
    assert keys("create", "--expires", "2999-01-02").exit_code == 2
    assert keys("create", "--expires", "2051-01-02T03:04:05Z").exit_code == 0
    first, second = json.loads(keys("list", "-o", "json").stdout)
    assert (first["role"], first["flows"], first["label"], first["lastUsedTime"]) == ("starter", "order-", "shop", None)
    made, ends = (datetime.fromisoformat(first[name]) for name in ("createdTime", "expiresTime"))
    assert ends - made == timedelta(days=90)
    assert (second["role"], second["flows"], second["expiresTime"]) == ("admin", "", "2051-01-02T03:04:05.000Z")
    ends_ms = int(ends.timestamp() * 1000)
    for now_ms, is_found in ((ends_ms - 1, True), (ends_ms, False)):
        found = sqlite_database.run_read(lambda connection, now_ms=now_ms: find_access_key(connection, key_id, now_ms))
        assert (found is not None) is is_found


@pytest.mark.parametrize(
    "wrong",
    [
        ("--role", "owner"),
        ("--flows", "order*"),
        ("--flows", "9"),
        ("--expires", "0d"),
        ("--expires", "soon"),
        ("--expires", "90"),
        ("--expires", "99999999d"),
        ("--expires", "2020-01-01"),
    ],
)
def test_wrong_roles_flows_and_ends_are_refused(keys, wrong):
    assert keys("create", *wrong).exit_code == 2


def test_list_shows_no_secrets(keys):
    assert "There are no keys" in keys("list").stderr
    created = json.loads(keys("create", "--format", "json").stdout)
    second = keys("create", "--label", "ci")
    assert "first key" not in second.stderr
    listing = keys("list").stdout
    assert created["accessKeySecret"] not in listing
    assert created["bearerToken"] not in listing
    heading, first, last = listing.splitlines()
    assert heading.split() == ["ID", "ROLE", "FLOWS", "CREATED", "EXPIRES", "LAST-USED", "DISABLED", "LABEL"]
    assert first.split()[0] == created["accessKeyId"]
    assert last.split()[1:3] == ["admin", "-"]
    assert last.split()[4:] == ["-", "-", "-", "ci"]
    (as_json, _) = json.loads(keys("list", "--format", "json").stdout)
    instants = {"createdTime", "expiresTime", "lastUsedTime", "disabledTime"}
    assert set(as_json) == {"accessKeyId", "role", "flows", "label", *instants}


def test_disabled_permanently(keys, sqlite_database):
    key_id = json.loads(keys("create", "--format", "json").stdout)["accessKeyId"]
    result = keys("disable", key_id)
    assert (result.exit_code, result.stdout) == (0, f"disabled {key_id}\n")
    assert sqlite_database.run_read(lambda connection: find_access_key(connection, key_id, 0)) is None
    assert json.loads(keys("list", "--format", "json").stdout)[0]["disabledTime"]
    again = keys("disable", key_id)
    assert again.exit_code == 3
    assert one_line(again) == f"flowserver: there is no enabled access key {key_id}"


def test_lost_keys_leave_it_closed_until_it_is_opened_again(keys, sqlite_database):
    keys("create")
    with sqlite_database.write() as connection:
        connection.execute(delete(access_keys))
    assert "There were keys, and all are gone" in keys("list").stderr
    assert "first key" not in keys("create").stderr
    without_terminal = keys("open")
    assert (without_terminal.exit_code, "needs --yes" in one_line(without_terminal)) == (2, True)
    assert "deleted 1 access keys" in keys("open", "--yes").stdout
    assert keys("list").stderr == (
        "There are no keys: a server that starts now is open to every program on its machine. "
        "One that ran during `keys open` stays closed until it is restarted.\n"
    )


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"y\n", 0)])
def test_at_a_terminal_open_asks(sqlite_url, answer, code):
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "flowserver", "keys", "open", "--database-url", sqlite_url]
    os.write(ours, answer)
    try:
        asked = subprocess.run(program, stdin=theirs, capture_output=True, check=False)
    finally:
        os.close(ours)
        os.close(theirs)
    assert asked.returncode == code
    assert b"Delete every access key" in asked.stdout


@pytest.mark.parametrize("label", ["x" * 101, "two\nlines", "\x1b[31m"])
def test_labels_that_would_break_the_listing(keys, label):
    assert keys("create", "--label", label).exit_code == 2


def test_the_first_key_needs_no_server_and_no_migration_before_it(run, new_url, tmp_path, monkeypatch):
    monkeypatch.setenv("FLOWSERVER_MIGRATE", "false")
    assert run("keys", "create", "--database-url", new_url).exit_code == 3
    assert list((tmp_path / "data").iterdir()) == []
    monkeypatch.delenv("FLOWSERVER_MIGRATE")

    created = run("keys", "create", "--database-url", new_url)
    assert created.exit_code == 0
    assert f"made {tmp_path / 'data'}" in created.stderr
    assert "This is the first key" in created.stderr
    again = run("keys", "create", "--database-url", new_url)
    assert "made" not in again.stderr
    assert len(run("keys", "list", "--database-url", new_url).stdout.splitlines()) == 3


@pytest.mark.parametrize("command", [["list"], ["disable", "FLS1"]])
def test_without_a_database_nothing_is_created(run, new_url, tmp_path, command):
    result = run("keys", *command, "--database-url", new_url)
    assert result.exit_code == 3
    assert one_line(result).endswith(f"create it: flowserver migrate --database-url {new_url}")
    assert list((tmp_path / "data").iterdir()) == []


def test_postgresql(run, migrated_postgres_url):
    assert run("keys", "create", "--database-url", migrated_postgres_url).exit_code == 0
    assert len(run("keys", "list", "--database-url", migrated_postgres_url).stdout.splitlines()) == 2
