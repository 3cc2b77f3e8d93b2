"""Encrypting everything again while servers change what they have."""

from sqlalchemy import Connection

from flowserver.base.encryption import Encryption, new_key
from flowserver.store.encrypted_values import drop_value, encrypt_again, encrypted_values, unreadable_values
from flowserver.store.named_secrets import place_of_secret, put_secret, values_of
from flowserver.store.sql.database import Database

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
