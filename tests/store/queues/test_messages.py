"""Messages of queues: order, receipts, visibility, and expiry."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Connection

from flowserver.store.queues.messages import (
    READIED_AT_ONCE,
    Counts,
    QueueMessage,
    ScanResult,
    any_expired,
    change_visibility,
    count_messages,
    delete_expired,
    delete_messages,
    delete_received,
    peek_messages,
    receive_messages,
    scan_queue,
    send_messages,
)
from flowserver.store.sql.database import Database
from tests.store.plans import plan_of
from tests.store.queue_rows import NOW, keep_queue, queue_message

UNTIL = NOW + 30_000


def receive(
    connection: Connection, limit: int = 16, *, receipt: str = "r1", now_ms: int = NOW, until_ms: int = 0
) -> list[QueueMessage]:
    return receive_messages(
        connection, "q", limit, receipt=receipt, until_ms=until_ms or now_ms + 30_000, now_ms=now_ms
    )


def ids(messages: list[QueueMessage]) -> list[str]:
    return [message.message_id for message in messages]


def test_messages_come_by_priority_then_age_then_id(database: Database) -> None:
    with database.write() as connection:
        keep_queue(
            connection,
            "q",
            queue_message("B", enqueued_at=NOW - 1),
            queue_message("C"),
            queue_message("A"),
            queue_message("last", priority=16, enqueued_at=NOW - 9),
            queue_message("first", priority=1),
        )
        assert ids(peek_messages(connection, "q", 2, NOW)) == ["first", "B"]
        assert ids(receive(connection, 2)) == ["first", "B"]
        assert ids(receive(connection)) == ["A", "C", "last"]
        assert receive(connection) == []


def test_a_receive_hides_counts_and_gives_a_receipt(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "q", queue_message("A"))
        (first,) = receive(connection, receipt="r1")
        assert first == queue_message("A", visible_at=UNTIL, first_dequeued_at=NOW, dequeue_count=1, receipt="r1")
        assert receive(connection, now_ms=UNTIL - 1) == []
        (again,) = receive(connection, receipt="r2", now_ms=UNTIL)
        assert (again.first_dequeued_at, again.dequeue_count, again.receipt) == (NOW, 2, "r2")


def test_an_existing_message_is_left_unchanged(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "q", queue_message("A"), queue_message("A", body="another"))
        receive(connection, receipt="r1")
        send_messages(connection, [("q", queue_message("A"))], NOW)
        assert receive(connection) == []
        assert delete_received(connection, "q", [("A", "r1")], NOW) == {("A", "r1")}


def test_only_the_last_receipt_is_valid_and_only_for_a_time(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "q", queue_message("A"), queue_message("B"), queue_message("C"))
        receive(connection, receipt="r1")
        assert delete_received(connection, "q", [("A", "r2"), ("none", "r1")], NOW) == set()
        assert delete_received(connection, "q", [("A", "r1")], UNTIL) == set()
        receive(connection, receipt="r2", now_ms=UNTIL)
        # Of B only the old receipt is given, though its new one is valid for A.
        assert delete_received(connection, "q", [("B", "r1"), ("A", "r2")], UNTIL) == {("A", "r2")}
        assert delete_received(connection, "q", [("A", "r2")], UNTIL) == set()
        assert count_messages(connection, "q", UNTIL) == Counts(active=0, inactive=2, delayed=0)


def test_visibility_is_changed_under_a_new_receipt(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "q", queue_message("A"))
        receive(connection, receipt="r1")

        def change(receipt: str, fresh: str, until_ms: int, now_ms: int = NOW) -> bool:
            return change_visibility(connection, "q", "A", receipt, fresh=fresh, until_ms=until_ms, now_ms=now_ms)

        assert change("r1", "r2", NOW + 90_000)
        assert change("r1", "r2", NOW + 90_000), "retried because the answer was lost"
        assert not change("r1", "r3", NOW + 90_000)
        assert receive(connection, now_ms=NOW + 89_999) == []
        assert not change("r2", "r3", NOW + 99_000, NOW + 90_000)
        assert change("r2", "r4", NOW + 10)
        assert ids(receive(connection, now_ms=NOW + 10)) == ["A"]


def test_a_delayed_message_can_be_deleted_but_not_received_before_its_time(database: Database) -> None:
    with database.write() as connection:
        late = queue_message("A", visible_at=NOW + 5_000, receipt="r0")
        keep_queue(connection, "q", late, queue_message("B", visible_at=NOW + 5_000, receipt="r0"))
        assert peek_messages(connection, "q", 9, NOW) == receive(connection) == []
        assert count_messages(connection, "q", NOW) == Counts(active=0, inactive=0, delayed=2)
        assert delete_received(connection, "q", [("B", "r0")], NOW) == {("B", "r0")}
        assert ids(peek_messages(connection, "q", 9, NOW + 5_000)) == ["A"]
        (came,) = receive(connection, now_ms=NOW + 5_000)
        assert came.dequeue_count == 1


def test_a_message_that_reappears_keeps_its_place(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "q", queue_message("A"), queue_message("B", priority=9), queue_message("C", priority=7))
        receive(connection, 2)
        assert ids(peek_messages(connection, "q", 9, UNTIL)) == ["C", "A", "B"]
        assert ids(receive(connection, now_ms=UNTIL)) == ["C", "A", "B"]


def test_a_read_counts_no_further_than_requested_and_finds_the_next_instant(database: Database) -> None:
    with database.write() as connection:
        assert scan_queue(connection, "q", 1, NOW) is None
        keep_queue(connection, "q", polling_seconds=3)
        assert scan_queue(connection, "q", 1, NOW) == ScanResult(3, 0, None)
        messages = [queue_message(name) for name in "ABC"]
        later = [queue_message(f"late{n}", visible_at=NOW + n) for n in (5, 9)]
        send_messages(connection, [("q", each) for each in (*messages, *later)], NOW)
        assert scan_queue(connection, "q", 2, NOW) == ScanResult(3, 2, NOW + 5)
        assert scan_queue(connection, "q", 16, NOW) == ScanResult(3, 3, NOW + 5)
        found = scan_queue(connection, "q", 16, NOW + 5)
        assert found == ScanResult(3, 4, NOW + 9)
        receive(connection, 3)
        assert scan_queue(connection, "q", 1, NOW + 9) == ScanResult(3, 1, UNTIL)


def test_expired_messages_are_neither_seen_nor_kept(database: Database) -> None:
    with database.write() as connection:
        old = [queue_message(f"old{n}", expires_at=NOW + n) for n in (1, 2, 3)]
        keep_queue(connection, "q", *old, queue_message("recent"))
        assert not any_expired(connection, NOW)
        assert any_expired(connection, NOW + 1)
        assert ids(peek_messages(connection, "q", 9, NOW + 2)) == ["old3", "recent"]
        assert scan_queue(connection, "q", 9, NOW + 2) == ScanResult(0, 2, None)
        assert count_messages(connection, "q", NOW + 2).active == 2
        assert ids(receive(connection, 1, now_ms=NOW + 2)) == ["old3"]
        assert delete_expired(connection, NOW + 3, 2) == 2
        assert delete_expired(connection, NOW + 3, 2) == 1, "a received message expires, too"
        assert ids(receive(connection, now_ms=NOW + 3)) == ["recent"]


def test_queues_do_not_share_messages(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "q", queue_message("A"))
        keep_queue(connection, "r", queue_message("A"), queue_message("B"))
        receive(connection, receipt="r1")
        assert delete_received(connection, "r", [("A", "r1")], NOW) == set()
        assert delete_messages(connection, "r", 1) == 1
        assert delete_messages(connection, "r", 9) == 1
        assert count_messages(connection, "q", NOW) == Counts(0, 1, 0)


def test_many_messages_that_reappear_at_once_do_so_in_portions(database: Database) -> None:
    count = READIED_AT_ONCE + 5
    with database.write() as connection:
        keep_queue(connection, "q", *(queue_message(f"M{n:04}") for n in range(count)))
        assert len(receive(connection, count)) == count
        back = [len(receive(connection, count, receipt="r2", now_ms=UNTIL)) for _ in range(3)]
    assert back == [READIED_AT_ONCE, 5, 0]


def test_two_concurrent_receives_get_different_messages(postgres_database: Database) -> None:
    with postgres_database.write() as connection:
        keep_queue(connection, "q", *(queue_message(f"M{n}") for n in range(6)))
    both_have = threading.Barrier(2, timeout=20)

    def take(receipt: str) -> list[str]:
        with postgres_database.write() as connection:
            taken = ids(receive(connection, 3, receipt=receipt))
            both_have.wait()
            return taken

    with ThreadPoolExecutor(2) as threads:
        taken = [each for got in threads.map(take, ["r1", "r2"]) for each in got]
    assert sorted(taken) == [f"M{n}" for n in range(6)]


def test_a_message_with_a_damaged_body_is_still_received(sqlite_database: Database) -> None:
    with sqlite_database.write() as connection:
        keep_queue(connection, "q", queue_message("A"))
        connection.exec_driver_sql("UPDATE queue_messages SET body = CAST(X'61FF62' AS TEXT)")
        (got,) = receive(connection)
    assert got.body == "a\ufffdb"


def test_every_statement_uses_an_index(database: Database) -> None:
    with database.write() as connection:
        keep_queue(connection, "q", *(queue_message(f"M{n:05}", visible_at=NOW + n % 2) for n in range(500)))
        if not database.is_sqlite:
            connection.exec_driver_sql("ANALYZE queue_messages")
        queries = [
            lambda c: receive(c, 3),
            lambda c: peek_messages(c, "q", 3, NOW + 1),
            lambda c: scan_queue(c, "q", 3, NOW + 1),
            lambda c: delete_received(c, "q", [("M00000", "r1")], NOW),
            lambda c: change_visibility(c, "q", "M00001", "r1", fresh="r2", until_ms=UNTIL, now_ms=NOW),
            lambda c: delete_expired(c, NOW, 9),
            lambda c: any_expired(c, NOW),
        ]
        for query in queries:
            plan = plan_of(connection, query)
            assert not [line for line in plan if "SCAN queue_messages" in line or "Seq Scan on queue_messages" in line]


def test_a_receive_reads_no_more_than_it_takes(sqlite_database: Database) -> None:
    with sqlite_database.write() as connection:
        keep_queue(connection, "q")
        plan = "\n".join(plan_of(connection, lambda c: receive(c, 3)))
        assert "ix_queue_messages_ready" in plan
        assert "ix_queue_messages_visible_at" in plan
        assert "TEMP B-TREE" not in plan
