"""Depths in lists: counts with a bound, whose cost does not grow with the queues."""

import pytest
from sqlalchemy import Connection, insert, select, text, update

from flowserver.store.queues import depths
from flowserver.store.queues.depths import Backlog, Depth, deepest_queues, depths_of_queues, undelivered_of_topics
from flowserver.store.schema.queue_tables import deliveries, queue_messages
from flowserver.store.sql.bounded_counts import Count
from flowserver.store.sql.database import Database
from tests.store.effort import effort_of
from tests.store.queue_rows import NOW, keep_queue, queue_message


def fill(connection: Connection, numbers: range) -> None:
    """Messages of the queue `deep`, and deliveries of the topic `deep`."""
    message = connection.execute(select(queue_messages)).first()
    assert message is not None
    rows = [message._asdict() | {"queue": "deep", "message_id": f"M{number:06}"} for number in numbers]
    connection.execute(insert(queue_messages), rows)
    delivery = {
        "target": "{}", "target_key": "k", "strategy": "s", "content_format": "c", "topic": "deep", "subscription": "s",
        "message_id": "M", "body": "b", "attempt": 0, "wake_at": 1, "created_at": 1,
    }  # fmt: skip
    connection.execute(insert(deliveries), [delivery | {"delivery_id": f"D{number:06}"} for number in numbers])
    connection.execute(text("ANALYZE"))


def look(connection: Connection) -> tuple[dict[str, Depth], dict[str, Count]]:
    names = ("deep", "empty", "q")
    return depths_of_queues(connection, names), undelivered_of_topics(connection, names)


def test_counts_end_at_a_bound_and_cost_no_more_in_deeper_queues(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depths, "DEPTH_MAX", 20)
    with database.write() as connection:
        keep_queue(connection, "q", queue_message("M2", enqueued_at=7), queue_message("M1", enqueued_at=5))
    efforts = []
    for numbers in (range(100), range(100, 3_000)):
        with database.write() as connection:
            fill(connection, numbers)
        with database.read() as connection:
            if connection.dialect.name == "postgresql":  # which reads tables of so few pages whole
                connection.execute(text("SET LOCAL enable_seqscan = off"))
                connection.execute(text("SET LOCAL enable_bitmapscan = off"))
            found, undelivered = look(connection)
            efforts.append(effort_of(connection, look))
    assert (found["q"], found["empty"]) == (Depth(Count(2), 5), Depth(Count(0), None))
    assert found["deep"].messages == undelivered["deep"] == Count(20, at_least=True)
    assert undelivered["q"] == Count(0)
    assert efforts[1] <= 1.5 * efforts[0], efforts


def deepest(connection: Connection) -> list[Backlog]:
    return deepest_queues(connection, NOW, 2)


def test_the_backlogs_of_the_deepest_queues_cost_no_more_in_deeper_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DEPTH_MAX", "VISIBLE_MAX", "HIDDEN_MAX"):
        monkeypatch.setattr(depths, name, 20)
    later = NOW + 1
    with database.write() as connection:
        keep_queue(connection, "q", *(queue_message(f"M{each}", enqueued_at=each) for each in range(5, 8)))
        changes = {"M6": {"visible_at": later, "dequeue_count": 1}, "M7": {"visible_at": later, "dequeue_count": 0}}
        for message_id, values in changes.items():
            which = queue_messages.c.message_id == message_id
            connection.execute(update(queue_messages).where(which).values(is_ready=False, **values))
        keep_queue(connection, "noticed-later", queue_message("N1"), queue_message("N2"))
        over = {"is_ready": False, "visible_at": NOW, "dequeue_count": 1}
        connection.execute(update(queue_messages).where(queue_messages.c.message_id == "N2").values(over))
        keep_queue(connection, "empty")
    with database.read() as connection:
        assert deepest(connection) == [Backlog("noticed-later", 2, 0, 0, NOW), Backlog("q", 1, 1, 1, 5)]
    with database.write() as connection:
        keep_queue(connection, "deep")
    efforts = []
    for numbers in (range(100), range(100, 3_000)):
        with database.write() as connection:
            fill(connection, numbers)
        with database.read() as connection:
            if connection.dialect.name == "postgresql":  # which reads tables of so few pages whole
                connection.execute(text("SET LOCAL enable_seqscan = off"))
                connection.execute(text("SET LOCAL enable_bitmapscan = off"))
            found = deepest(connection)
            efforts.append(effort_of(connection, deepest))
    assert [(each.queue, each.visible) for each in found] == [("deep", 20), ("q", 1)]
    assert efforts[1] <= 1.5 * efforts[0], efforts
