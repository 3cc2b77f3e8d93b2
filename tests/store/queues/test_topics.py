"""Topics, and the subscriptions that match their messages."""

from dataclasses import replace
from typing import Any

from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.store.queues.topics import (
    SubscriptionRow,
    TopicRow,
    count_subscriptions,
    delete_subscription,
    delete_topic,
    find_subscription,
    find_topic,
    hold_topic,
    insert_subscription,
    insert_topic,
    list_subscriptions,
    list_topics,
    set_strategy,
    subscriptions_for,
    update_topic,
)
from flowserver.store.sql.database import Database


def topic(name: str = "news", **changes: Any) -> TopicRow:
    values = {"name": name, "message_bytes_max": 65_536, "is_logged": False, "created_at": 1, "modified_at": 1}
    return TopicRow(**{**values, **changes})


def subscription(name: str, topic: str = "news", **changes: Any) -> SubscriptionRow:
    values = {
        "topic": topic,
        "name": name,
        "endpoint": "http://h/",
        "filter_tag": None,
        "strategy": Strategy.BACKOFF,
        "content_format": ContentFormat.XML,
        "created_at": 1,
        "modified_at": 1,
    }
    return SubscriptionRow(**{**values, **changes})


def test_creating_changing_and_deleting_a_topic(database: Database) -> None:
    with database.write() as connection:
        assert insert_topic(connection, topic())
        assert not insert_topic(connection, topic(is_logged=True))
        assert find_topic(connection, "news") == hold_topic(connection, "news") == topic()
        assert update_topic(connection, "news", {"is_logged": True}, 9)
        assert find_topic(connection, "news") == topic(is_logged=True, modified_at=9)
        assert not update_topic(connection, "other", {}, 9)
        insert_subscription(connection, subscription("s"))
        insert_subscription(connection, subscription("s", "other"))
        delete_topic(connection, "news")
        assert find_topic(connection, "news") is None
        assert hold_topic(connection, "news") is None
        assert count_subscriptions(connection, "news") == 0
        assert count_subscriptions(connection, "other") == 1


def test_topics_are_listed_by_code_points(database: Database) -> None:
    names = ["Zoo", "a-1", "a1", "aB", "ab", "b"]
    with database.write() as connection:
        for name in reversed(names):
            insert_topic(connection, topic(name))

        def listed(prefix: str = "", from_name: str = "", limit: int = 9) -> list[str]:
            rows = list_topics(connection, prefix=prefix, from_name=from_name, limit=limit)
            return [row.name for row in rows]

        assert listed() == names
        assert listed(limit=2) == names[:2]
        assert listed(prefix="a") == ["a-1", "a1", "aB", "ab"]
        assert listed(prefix="a", from_name="aB", limit=1) == ["aB"]
        assert listed(prefix="ab", from_name="b") == []


def test_creating_changing_and_deleting_a_subscription(database: Database) -> None:
    row = subscription("s", filter_tag="red", strategy=Strategy.EXPONENTIAL_DECAY, content_format=ContentFormat.JSON)
    with database.write() as connection:
        assert insert_subscription(connection, row)
        assert not insert_subscription(connection, subscription("s"))
        assert find_subscription(connection, "news", "s") == row
        assert set_strategy(connection, "news", "s", Strategy.BACKOFF, 7)
        assert find_subscription(connection, "news", "s") == replace(row, strategy=Strategy.BACKOFF, modified_at=7)
        assert not set_strategy(connection, "news", "t", Strategy.BACKOFF, 7)
        delete_subscription(connection, "news", "s")
        assert find_subscription(connection, "news", "s") is None


def test_a_filter_matches_its_own_tag(database: Database) -> None:
    with database.write() as connection:
        for name, tag in (("all", None), ("red", "red"), ("blue", "blue"), ("Red", "Red")):
            insert_subscription(connection, subscription(name, filter_tag=tag))
        insert_subscription(connection, subscription("elsewhere", "other"))

        def wanting(tag: str | None) -> list[str]:
            return [row.name for row in subscriptions_for(connection, "news", tag)]

        assert wanting(None) == ["all"]
        assert wanting("red") == ["all", "red"]
        assert wanting("green") == ["all"]


def test_subscriptions_are_listed_by_name(database: Database) -> None:
    with database.write() as connection:
        for name in ("b", "a2", "a1"):
            insert_subscription(connection, subscription(name))
        insert_subscription(connection, subscription("a3", "other"))
        page = list_subscriptions(connection, "news", prefix="a", from_name="", limit=9)
        assert [row.name for row in page] == ["a1", "a2"]
        page = list_subscriptions(connection, "news", prefix="", from_name="a2", limit=1)
        assert [row.name for row in page] == ["a2"]
        assert count_subscriptions(connection, "news") == 3
