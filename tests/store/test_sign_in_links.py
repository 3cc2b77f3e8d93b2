"""Sign-in links in the database: used once, and void once there is a key, also on two nodes at the same time."""

import threading
import time
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import func, select

from flowserver.operations.access import make_access_key
from flowserver.operations.sign_in_links import make_sign_in_link
from flowserver.store.access_keys import delete_keys, insert_access_key
from flowserver.store.schema.sign_in_tables import sign_in_links
from flowserver.store.sign_in_links import insert_link, take_link
from flowserver.store.sql.database import Database
from tests.support.server import PATIENCE_SECONDS


def add(database: Database, now_ms: int = 0, *, is_first: bool = False) -> str:
    """A new link that is over 900 seconds later; returns its digest."""
    link = make_sign_in_link(now_ms, 900, role="viewer", flows="order-", key_expires_at=10**12, is_first=is_first).link
    with database.write() as connection:
        insert_link(connection, link, now_ms)
    return link.digest


def test_a_link_is_used_once_and_until_its_end(database: Database) -> None:
    used, late = add(database), add(database)
    with database.write() as connection:
        link = take_link(connection, used, 899_999)
        assert link is not None
        assert (link.role, link.flows, link.key_expires_at, link.is_first) == ("viewer", "order-", 10**12, False)
        assert take_link(connection, used, 899_999) is None
        assert take_link(connection, late, 900_000) is None


def test_a_link_lives_no_longer_than_its_key() -> None:
    assert make_sign_in_link(5, 900, key_expires_at=7).link.expires_at == 7


def test_links_that_are_over_are_deleted(database: Database) -> None:
    for now_ms in (0, 1, 900_000):
        add(database, now_ms)
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(sign_in_links)).scalar_one() == 2


def test_a_first_key_makes_links_for_a_first_key_void(database: Database) -> None:
    first, other = add(database, is_first=True), add(database)
    with database.write() as connection:
        insert_access_key(connection, make_access_key("by a command", 0).key)
    later = add(database, is_first=True)  # by a node that had not noticed the key yet
    with database.write() as connection:
        assert take_link(connection, first, 1) is None
        assert take_link(connection, later, 1) is None
        assert take_link(connection, other, 1) is not None


def test_opening_a_server_makes_all_links_void(database: Database) -> None:
    digest = add(database)
    with database.write() as connection:
        delete_keys(connection)
        assert take_link(connection, digest, 1) is None


def wait_until_blocked(url: str) -> None:
    blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    end = time.monotonic() + PATIENCE_SECONDS
    with psycopg.connect(url, autocommit=True) as session:
        while session.execute(blocked).fetchone() is None:
            assert time.monotonic() < end


@pytest.mark.parametrize("is_same_link", [True, False])
def test_of_two_nodes_one_makes_the_first_key(
    postgres_database: Database, migrated_postgres_url: str, is_same_link: bool
) -> None:
    """The second waits for the first to commit, and then finds the link used, or the key made."""
    digests = [add(postgres_database, is_first=True) for _ in range(2)]
    made = []

    def take() -> None:
        with closing(Database(migrated_postgres_url)) as another, another.write() as connection:
            made.append(take_link(connection, digests[0 if is_same_link else 1], 1))

    with postgres_database.write() as connection:
        assert take_link(connection, digests[0], 1) is not None
        other = threading.Thread(target=take)
        other.start()
        wait_until_blocked(migrated_postgres_url)
        insert_access_key(connection, make_access_key("first", 0).key)
    other.join(PATIENCE_SECONDS)
    assert made == [None]
