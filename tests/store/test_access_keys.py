"""Access keys, nonces, the server's own secrets."""

import threading

import pytest
from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from flowserver.base.nonces import Nonce
from flowserver.store.access_keys import (
    DELETED_AT_ONCE,
    KEYS_SEEN,
    Admission,
    delete_expired_nonces,
    delete_keys,
    disable_access_key,
    find_access_key,
    find_key_by_token,
    insert_access_key,
    keep_secret,
    list_access_keys,
    note_key_use,
    read_admission,
    remember_keys,
    token_digest,
    use_nonce,
)
from flowserver.store.schema.tables import access_keys, nonces, secrets
from flowserver.store.sql.database import Database
from tests.store.rows import access_key


def test_a_key_is_found_until_it_is_disabled(database: Database) -> None:
    key = access_key("ak", secret="s", token_digest=token_digest("token"), label="中")
    with database.write() as connection:
        assert read_admission(connection) is Admission.OPEN
        insert_access_key(connection, key)
        assert find_access_key(connection, "ak", 5) == key
        assert find_access_key(connection, "AK", 5) is None
        assert find_key_by_token(connection, token_digest("token"), 5) == key
        assert find_key_by_token(connection, "token", 5) is None
        assert disable_access_key(connection, "ak", 7)
        assert not disable_access_key(connection, "ak", 8)
        assert find_access_key(connection, "ak", 5) is None
        assert find_key_by_token(connection, token_digest("token"), 5) is None
        assert [each.disabled_at for each in list_access_keys(connection)] == [7]
        assert read_admission(connection) is Admission.KEYED  # disabling the last key does not open the server


def test_a_key_is_found_until_it_expires(database: Database) -> None:
    with database.write() as connection:
        insert_access_key(connection, access_key("ak", token_digest="d", expires_at=9))
        for now_ms, is_found in ((8, True), (9, False)):
            assert (find_access_key(connection, "ak", now_ms) is not None) is is_found
            assert (find_key_by_token(connection, "d", now_ms) is not None) is is_found
        assert read_admission(connection) is Admission.KEYED


def test_the_last_use_is_the_latest(database: Database) -> None:
    with database.write() as connection:
        insert_access_key(connection, access_key("ak"))
        insert_access_key(connection, access_key("other"))
        for now_ms in (7, 9, 8):
            note_key_use(connection, "ak", now_ms)
        assert {key.access_key_id: key.last_used_at for key in list_access_keys(connection)} == {"ak": 9, "other": None}


def test_a_database_remembers_that_it_had_a_key(database: Database) -> None:
    with database.write() as connection:
        insert_access_key(connection, access_key("ak"))
        connection.execute(delete(access_keys))
        assert read_admission(connection) is Admission.LOST
        insert_access_key(connection, access_key("ak"))
        assert read_admission(connection) is Admission.KEYED
        assert delete_keys(connection) == 1
        assert read_admission(connection) is Admission.OPEN


def test_keys_of_a_version_without_that_record_are_recorded(database: Database) -> None:
    with database.write() as connection:
        remember_keys(connection)
        assert read_admission(connection) is Admission.OPEN
        insert_access_key(connection, access_key("ak"))
        connection.execute(delete(secrets).where(secrets.c.name == KEYS_SEEN))
        remember_keys(connection)
        connection.execute(delete(access_keys))
        assert read_admission(connection) is Admission.LOST


def test_keys_are_listed_oldest_first(database: Database) -> None:
    with database.write() as connection:
        for name, created_at in (("b", 3), ("c", 1), ("a", 2)):
            insert_access_key(connection, access_key(name, created_at=created_at))
        assert [key.access_key_id for key in list_access_keys(connection)] == ["c", "a", "b"]


def test_ids_and_tokens_are_unique(database: Database) -> None:
    with database.write() as connection:
        insert_access_key(connection, access_key("ak", token_digest="d"))
    for twin in (access_key("ak", token_digest="d2"), access_key("ak2", token_digest="d")):
        with pytest.raises(IntegrityError), database.write() as connection:
            insert_access_key(connection, twin)


def test_a_nonce_is_used_once_per_key(database: Database) -> None:
    with database.write() as connection:
        assert use_nonce(connection, Nonce("ak", "n", 10))
        assert not use_nonce(connection, Nonce("ak", "n", 99))
        assert use_nonce(connection, Nonce("ak2", "n", 10))
        assert use_nonce(connection, Nonce("ak", "N", 20))
    with database.write() as connection:
        assert not use_nonce(connection, Nonce("ak", "n", 10))
        assert delete_expired_nonces(connection, 10) == 0
        assert delete_expired_nonces(connection, 11) == 2
        assert use_nonce(connection, Nonce("ak", "n", 30))
        assert not use_nonce(connection, Nonce("ak", "N", 30))


def test_old_nonces_are_deleted_in_portions_oldest_first(database: Database) -> None:
    """One delete of a busy quarter of an hour would delay every other write."""
    rows = [
        {"access_key_id": "ak", "nonce": str(number), "expires_at": number} for number in range(DELETED_AT_ONCE + 9)
    ]
    with database.write() as connection:
        connection.execute(insert(nonces), rows)
        assert delete_expired_nonces(connection, DELETED_AT_ONCE + 5) == DELETED_AT_ONCE
        assert connection.execute(select(func.min(nonces.c.expires_at))).scalar_one() == DELETED_AT_ONCE
        assert delete_expired_nonces(connection, DELETED_AT_ONCE + 5) == 5
        assert delete_expired_nonces(connection, DELETED_AT_ONCE + 5) == 0


def test_a_secret_is_created_once(database: Database) -> None:
    with database.write() as connection:
        assert keep_secret(connection, "a", "first") == "first"
        assert keep_secret(connection, "a", "second") == "first"
        assert keep_secret(connection, "b", "third") == "third"


def test_two_nodes_agree_on_a_secret(database_url: str) -> None:
    databases = [Database(database_url), Database(database_url)]
    start, kept = threading.Barrier(2), []

    def keep(number: int) -> None:
        start.wait()
        with databases[number].write() as connection:
            kept.append(keep_secret(connection, "a", f"of {number}"))

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 2
    assert len(set(kept)) == 1
    for each in databases:
        each.close()


def test_a_digest_takes_any_text() -> None:
    assert token_digest("a") != token_digest("b")
    assert len(token_digest("\ud800")) == 64
