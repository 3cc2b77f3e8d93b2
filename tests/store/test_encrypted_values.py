"""Encrypting everything again while servers change what they have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from flowserver.base.encryption import Encryption, new_key
from flowserver.store.access_keys import insert_access_key
from flowserver.store.encrypted_values import drop_value, encrypt_again, encrypted_values, unreadable_values
from flowserver.store.named_secrets import place_of_secret, put_secret, values_of
from flowserver.store.sql.database import Database
from tests.store.rows import access_key

SECRET = "a secret in clear text"
OLD, NEW = Encryption([new_key()]), Encryption([new_key()])
NAMES = ("KEPT", "LOST")


def put(connection: Connection, name: str, encryption: Encryption, value: str) -> None:
    put_secret(connection, name, encryption.encrypt(value, place_of_secret(name)), 1)


def test_a_value_that_was_set_meanwhile_is_not_dropped(database: Database) -> None:
    """It was unreadable when it was looked at, and is good now."""
    with database.write() as connection:
        for name in NAMES:
            put(connection, name, OLD, "old")
    with database.write() as connection:
        unreadable = unreadable_values(connection, NEW)
    with database.write() as connection:
        put(connection, "KEPT", NEW, "new")
    with database.write() as connection:
        assert [(each.name, drop_value(connection, each)) for each in unreadable] == [("KEPT", False), ("LOST", True)]
        assert [each.name for each in encrypted_values(connection)] == ["KEPT"]
        assert encrypt_again(connection, NEW) == 0
        assert values_of(connection, ["KEPT"], NEW) == {"KEPT": "new"}


@pytest.fixture
def plain_build() -> Iterator[None]:
    """Connections begin as those of a SQLite that was built without SQLITE_SECURE_DELETE."""

    def as_built(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA secure_delete = OFF").fetchall()

    event.listen(Engine, "connect", as_built)
    yield
    event.remove(Engine, "connect", as_built)


@pytest.mark.usefixtures("plain_build")
def test_what_was_in_clear_text_is_not_left_in_the_file(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    with database.write() as connection:
        for number in range(20):
            insert_access_key(connection, access_key(f"ak{number}", secret=f"{SECRET} {number}"))
    with database.write() as connection:
        encrypt_again(connection, NEW)
    database.close()
    assert SECRET.encode() not in Path(sqlite_url.removeprefix("sqlite:///")).read_bytes()
