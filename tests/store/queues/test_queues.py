"""Queues and their attributes."""

from dataclasses import replace

from flowserver.store.queues.queues import (
    delete_queue,
    find_queue,
    hold_queues,
    insert_queue,
    list_queues,
    update_queue,
)
from flowserver.store.sql.database import Database
from tests.store.queue_rows import keep_queue, queue_row


def test_a_queue_is_made_changed_and_deleted(database: Database) -> None:
    row = queue_row("q", is_logged=True)
    with database.write() as connection:
        assert insert_queue(connection, row)
        assert not insert_queue(connection, queue_row("q", visibility_seconds=9))
        assert find_queue(connection, "q") == row
        assert update_queue(connection, "q", {"visibility_seconds": 5}, now_ms=7)
        assert find_queue(connection, "q") == replace(row, visibility_seconds=5, modified_at=7)
        assert delete_queue(connection, "q")
        assert not delete_queue(connection, "q")
        assert find_queue(connection, "q") is None
        assert not update_queue(connection, "q", {"visibility_seconds": 5}, now_ms=7)


def test_queues_are_locked_by_name(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "a")
        keep_queue(connection, "b")
        assert hold_queues(connection, {"b", "none", "a"}) == {"a": queue_row("a"), "b": queue_row("b")}
        assert hold_queues(connection, set()) == {}


def test_queues_are_listed_by_prefix_and_name(database: Database) -> None:
    with database.write() as connection:
        for name in ("Orders", "orders-2", "orders-1", "zoo", "a"):
            keep_queue(connection, name)

        def names(prefix: str, from_name: str = "", limit: int = 9) -> list[str]:
            return [row.name for row in list_queues(connection, prefix=prefix, from_name=from_name, limit=limit)]

        assert names("") == ["Orders", "a", "orders-1", "orders-2", "zoo"]
        assert names("orders") == ["orders-1", "orders-2"]
        assert names("orders", "orders-2") == ["orders-2"]
        assert names("", "b", 2) == ["orders-1", "orders-2"]
        assert names("a", "zoo") == []
