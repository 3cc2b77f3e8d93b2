"""Deliveries are found when due, claimed by one node, and deleted when they have succeeded."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from string import ascii_letters
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, text, update

from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.store.queues.deliveries import (
    Delivery,
    NewDelivery,
    claim_deliveries,
    count_undelivered_messages,
    delete_deliveries_of,
    delete_delivery,
    insert_deliveries,
    next_delivery_at,
    put_off_delivery,
)
from flowserver.store.schema.queue_tables import deliveries
from flowserver.store.sql.database import Database
from tests.store.effort import effort_of

SHOP, BANK = "http://shop/hook", "acs:mns:::/queues/bank/messages"


def new(delivery_id: str, target: str = SHOP, **changes: Any) -> NewDelivery:
    return NewDelivery(**{"delivery_id": delivery_id, "target": target, "message_id": "m", "body": "b", **changes})


def claim(
    connection: Connection, now_ms: int, until_ms: int, limit: int = 5, per_target_max: int = 100, **under_way: int
) -> list[Delivery]:
    targets = {"shop": SHOP, "bank": BANK}
    counts = {targets[name]: count for name, count in under_way.items()}
    return claim_deliveries(connection, now_ms, until_ms, limit, counts, per_target_max)


def ids(claimed: list[Delivery]) -> list[str]:
    return [each.delivery_id for each in claimed]


def test_a_claimed_delivery_is_due_again_later(database: Database) -> None:
    given = new(
        "1",
        tag="t",
        strategy=Strategy.BACKOFF,
        content_format=ContentFormat.JSON,
        topic="news",
        subscription="s",
        invocation_key="k",
        body="值 \U0001f600",
    )
    with database.write() as connection:
        assert next_delivery_at(connection) is None
        insert_deliveries(connection, [given], 100)
        assert next_delivery_at(connection) == 100
        assert claim(connection, 99, 200) == []
        (claimed,) = claim(connection, 100, 200)
        assert claimed == Delivery(
            **{name: getattr(given, name) for name in NewDelivery.__slots__}, attempt=1, wake_at=200, created_at=100
        )
        assert next_delivery_at(connection) == 200
        assert claim(connection, 199, 300) == []
        assert claim(connection, 200, 300) == [replace(claimed, attempt=2, wake_at=300)]


def test_a_repeated_delivery_changes_nothing(database: Database) -> None:
    with database.write() as connection:
        insert_deliveries(connection, [new("1", body="first")], 100)
        claim(connection, 100, 200)
        insert_deliveries(connection, [new("1", body="again"), new("2")], 150)
        assert ids(claim(connection, 150, 250)) == ["2"]
        (first,) = claim(connection, 200, 300)
        assert (first.body, first.attempt) == ("first", 2)


def test_the_earliest_are_claimed_first_and_no_more_than_requested(database: Database) -> None:
    with database.write() as connection:
        for instant in (3, 1, 2):
            insert_deliveries(connection, [new(str(instant))], instant)
        assert ids(claim(connection, 9, 20, 2)) == ["1", "2"]
        assert ids(claim(connection, 9, 20, 2)) == ["3"]


def test_targets_can_be_excluded(database: Database) -> None:
    with database.write() as connection:
        insert_deliveries(connection, [new("1"), new("2")], 1)
        insert_deliveries(connection, [new("3", BANK)], 2)
        assert next_delivery_at(connection, {SHOP}) == 2
        assert next_delivery_at(connection, {SHOP, BANK}) is None
        assert ids(claim(connection, 9, 20, 1, per_target_max=2, shop=2)) == ["3"]


def test_no_target_takes_more_than_its_share(database: Database) -> None:
    with database.write() as connection:
        insert_deliveries(connection, [new(str(number)) for number in range(4)], 1)
        insert_deliveries(connection, [new("other", BANK)], 2)
        assert len(claim(connection, 9, 20, 9, per_target_max=3, shop=1)) == 3
        assert next_delivery_at(connection) == 1
        assert len(claim(connection, 9, 20, 9, per_target_max=3, shop=1)) == 2


def test_a_failed_delivery_is_postponed_unless_it_was_claimed_since(database: Database) -> None:
    with database.write() as connection:
        insert_deliveries(connection, [new("1")], 1)
        (first,) = claim(connection, 1, 10)
        (second,) = claim(connection, 10, 20)
        put_off_delivery(connection, first, 1000)
        assert next_delivery_at(connection) == 20
        put_off_delivery(connection, second, 2000)
        assert next_delivery_at(connection) == 2000


def test_a_successful_delivery_is_deleted(database: Database) -> None:
    with database.write() as connection:
        insert_deliveries(connection, [new("1"), new("2")], 1)
        assert delete_delivery(connection, "1")
        assert not delete_delivery(connection, "1")
        assert ids(claim(connection, 1, 2)) == ["2"]


def test_a_subscription_is_deleted_with_its_deliveries(database: Database) -> None:
    with database.write() as connection:
        some = [new(f"{topic}{sub}{n}", topic=topic, subscription=sub) for topic in "ab" for sub in "xy" for n in "123"]
        insert_deliveries(connection, [*some, new("other")], 1)
        assert delete_deliveries_of(connection, "a", "x", 2) == 2
        assert delete_deliveries_of(connection, "a", "x", 2) == 1
        assert delete_deliveries_of(connection, "b", None, 9) == 6
        assert sorted(ids(claim(connection, 1, 2, 20))) == ["ay1", "ay2", "ay3", "other"]


def test_messages_of_a_topic_are_counted_once_each(database: Database) -> None:
    with database.write() as connection:
        some = [new(f"{m}{s}", topic="a", subscription=s, message_id=m) for m in "12" for s in "xyz"]
        insert_deliveries(connection, [*some, new("other", topic="b")], 1)
        assert count_undelivered_messages(connection, "a") == 2
        assert count_undelivered_messages(connection, "none") == 0


def test_two_nodes_claim_different_deliveries(migrated_postgres_url: str) -> None:
    with _opened(migrated_postgres_url) as one, _opened(migrated_postgres_url) as other:
        with one.write() as connection:
            insert_deliveries(connection, [new("1")], 1)
            insert_deliveries(connection, [new("2")], 2)
        with one.write() as mine, other.write() as theirs:
            assert ids(claim(mine, 9, 20, 1)) == ["1"]
            assert ids(claim(theirs, 9, 20)) == ["2"]


@contextmanager
def _opened(url: str) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()


@pytest.mark.parametrize(
    "damage", [{"strategy": "NONE"}, {"content_format": "x"}, {"body": b"\xff"}, {"delivery_id": b"\xff"}]
)
def test_a_damaged_row_prevents_no_other_delivery(sqlite_database: Database, damage: dict[str, Any]) -> None:
    with sqlite_database.write() as connection:
        insert_deliveries(connection, [new("1")], 1)
        connection.execute(update(deliveries).values(**damage))
        insert_deliveries(connection, [new("2")], 2)
        assert ids(claim(connection, 9, 20)) == ["2"]


OTHERS = 20


def fill(connection: Connection, backlog: int) -> None:
    """This many deliveries for one target are due. Other targets wait, and one of them is due last of all."""
    insert_deliveries(connection, [new(f"hanging {number}") for number in range(backlog)], 1)
    insert_deliveries(connection, [new(f"waits {each}", f"http://{each}") for each in range(OTHERS)], 90)
    insert_deliveries(connection, [new("due", BANK)], 50)
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE deliveries"))


QUESTIONS: dict[str, tuple[Callable[[Connection], Any], Any]] = {
    "look": (lambda c: next_delivery_at(c, {SHOP}), 50),
    "claim elsewhere": (lambda c: ids(claim(c, 60, 99, 16, per_target_max=2, shop=2)), ["due"]),
    "claim of the backlog": (lambda c: len(claim(c, 60, 99, 16, per_target_max=2, bank=2)), 2),
    "claim of all": (lambda c: len(claim(c, 60, 99, 16, per_target_max=2)), 2),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_rows_read_do_not_grow_with_the_backlog(database: Database, name: str) -> None:
    question, answer = QUESTIONS[name]
    found: list[Any] = []

    def effort(backlog: int) -> int:
        with database.write() as connection:
            connection.execute(delete(deliveries))
            fill(connection, backlog)
            return effort_of(connection, lambda c: found.append(question(c)))

    few, many = effort(100), effort(10_000)
    assert found == [answer, answer]
    assert many <= few * 1.05 + OTHERS


def test_a_long_target_has_a_short_key(database: Database) -> None:
    """A row of a PostgreSQL index holds at most 2,704 bytes."""
    chance = random.Random(1)
    long = f"http://{''.join(chance.choices(ascii_letters, k=20_000))}"
    with database.write() as connection:
        insert_deliveries(connection, [new("1", long), new("2", f"{long}/2")], 1)
        assert next_delivery_at(connection, {long}) == 1
        assert [each.target for each in claim_deliveries(connection, 9, 20, 5, {long: 2}, 2)] == [f"{long}/2"]


def test_a_row_without_an_instant_is_not_due(sqlite_database: Database) -> None:
    with sqlite_database.write() as connection:
        insert_deliveries(connection, [new("1")], 1)
        row = connection.execute(deliveries.select()).one()._asdict()
        connection.execute(insert(deliveries), {**row, "delivery_id": "2"})
        connection.execute(update(deliveries).where(deliveries.c.delivery_id == "2").values(wake_at="never"))
        assert ids(claim(connection, 9, 20)) == ["1"]
        assert next_delivery_at(connection) == 20
