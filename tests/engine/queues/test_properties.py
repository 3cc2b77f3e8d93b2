"""Queues under any sequence of operations, failing commits and a moving clock: no message is lost or shared.

A model, a dictionary of messages, gets the same operations as the database. Operations come in groups, as in the
engine. A transaction may be rolled back, as by a crash before its commit, and a group may be repeated although its
first commit succeeded, as after a lost answer.
"""

from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from flowserver.store.queues.message_writes import Delete, Hide, NewQueueMessage, QueueWrite, Send, Take, apply_writes
from flowserver.store.queues.messages import (
    Counts,
    Receipt,
    count_messages,
    delete_expired,
    delete_messages,
    peek_messages,
    scan_queue,
)
from flowserver.store.queues.queues import delete_queue, insert_queue
from flowserver.store.sql.database import Database
from tests.store.queue_rows import queue_row
from tests.support.stateful import walk

VISIBILITY_SECONDS = 30
RETENTION_SECONDS = 200


class Crash(Exception):
    """Before the commit."""


@dataclass(frozen=True)
class Model:
    """The expected message."""

    id: str
    priority: int
    enqueued_at: int
    visible_at: int
    expires_at: int
    receipt: str | None
    dequeue_count: int = 0

    def is_active(self, now: int) -> bool:
        return self.visible_at <= now < self.expires_at

    def is_good(self, receipt: Receipt, now: int) -> bool:
        return receipt == (self.id, self.receipt) and self.visible_at > now


def in_order(messages: list[Model]) -> list[Model]:
    return sorted(messages, key=lambda each: (each.priority, each.enqueued_at, each.id))


class QueueMachine(RuleBasedStateMachine):
    """One queue and its model."""

    database: Database
    receipts = Bundle("receipts")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.numbers = count()
        self.model: dict[str, Model] = {}
        self.sent: set[str] = set()
        self.gone: set[str] = set()

    @initialize()
    def begin(self) -> None:
        with self.database.write() as connection:
            delete_messages(connection, "q", 10_000)
            delete_queue(connection, "q")
            insert_queue(
                connection, queue_row(visibility_seconds=VISIBILITY_SECONDS, retention_seconds=RETENTION_SECONDS)
            )

    # Operations

    @rule(
        target=receipts,
        sizes=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([None, 0, 5, 60])), min_size=1, max_size=4),
    )
    def send(self, sizes: list[tuple[int, int | None]]) -> Any:
        news = [
            NewQueueMessage(
                message_id=f"{number:08}", body="b", priority=priority, delay_seconds=delay, receipt=f"d{number}"
            )
            for (priority, delay), number in zip(sizes, [next(self.numbers) for _ in sizes], strict=True)
        ]
        self.do([Send("q", [each]) for each in news])
        for new in news:
            self.model[new.message_id] = self.as_sent(new)
            self.sent.add(new.message_id)
        return multiple(*((new.message_id, new.receipt) for new in news))

    @rule(target=receipts, wanted=st.lists(st.integers(1, 4), min_size=1, max_size=3), again=st.booleans())
    def take(self, wanted: list[int], again: bool) -> Any:
        orders = [Take("q", count, f"t{next(self.numbers)}") for count in wanted]
        answers = self.do(orders)
        self.check_taken(wanted, answers)
        if (
            again
        ):  # its answer was lost, and it is repeated: messages received before become visible again by themselves
            self.check_taken(wanted, self.do(orders))
        return multiple(*((each.message_id, each.receipt) for answer in answers for each in answer))

    @rule(given=st.lists(receipts, min_size=1, max_size=4), again=st.booleans())
    def delete(self, given: list[Receipt], again: bool) -> None:
        orders = [Delete("q", given[:2]), Delete("q", given[2:])]
        good = [self.is_good(receipt) for receipt in given]
        (first, second) = self.do(orders)
        assert [*first, *second] == good
        for receipt, is_good in zip(given, good, strict=True):
            if is_good:
                self.model.pop(receipt[0], None)
                self.gone.add(receipt[0])
        if again:  # its answer was lost, and it is repeated
            assert self.do(orders) == [first, second]

    @rule(target=receipts, receipt=receipts, seconds=st.sampled_from([0, 1, 60]), again=st.booleans())
    def hide(self, receipt: Receipt, seconds: int, again: bool) -> Any:
        order = Hide("q", receipt, seconds, f"h{next(self.numbers)}")
        is_good = self.is_good(receipt)
        (until,) = self.do([order])
        assert until == (self.now + seconds * 1000 if is_good else None)
        if not is_good:
            return multiple()
        if again and seconds:
            assert self.do([order]) == [until]
        self.change(receipt[0], visible_at=until, receipt=order.fresh)
        return (receipt[0], order.fresh)

    @rule(seconds=st.sampled_from([1, 5, 29, 30, 60, 199]), ms=st.integers(0, 1))
    def wait(self, seconds: int, ms: int) -> None:
        self.now += seconds * 1000 - ms

    @rule()
    def expire(self) -> None:
        over = {each.id for each in self.model.values() if each.expires_at <= self.now}
        with self.database.write() as connection:
            assert delete_expired(connection, self.now, 10_000) == len(over)
        for id in over:
            del self.model[id]
        self.gone |= over

    @rule(receipt=receipts)
    def crash(self, receipt: Receipt) -> None:
        """The transaction under way is rolled back."""
        new = NewQueueMessage(message_id=f"{next(self.numbers):08}", body="b")
        orders: list[QueueWrite] = [
            Send("q", [new]),
            Delete("q", [receipt]),
            Hide("q", receipt, 9, "c"),
            Take("q", 9, "c"),
        ]
        with pytest.raises(Crash), self.database.write() as connection:
            apply_writes(connection, orders, self.now)
            raise Crash

    # Invariants

    @invariant()
    def nothing_is_lost_and_nothing_comes_twice(self) -> None:
        assert self.sent == self.model.keys() | self.gone
        active = in_order([each for each in self.model.values() if each.is_active(self.now)])
        hidden = [each for each in self.model.values() if each.visible_at > self.now]
        with self.database.read() as connection:
            counts = count_messages(connection, "q", self.now)
            peeked = peek_messages(connection, "q", 100, self.now)
            found = scan_queue(connection, "q", 3, self.now)
        assert [each.message_id for each in peeked] == [each.id for each in active]
        alive = [each for each in hidden if each.expires_at > self.now]
        received = sum(each.dequeue_count > 0 for each in alive)
        assert counts == Counts(len(active), received, len(alive) - received)
        assert found is not None
        assert found.ready == min(3, len(active))
        assert found.next_at == min((each.visible_at for each in hidden), default=None)

    # Implementation

    def do(self, orders: list[QueueWrite]) -> list[Any]:
        with self.database.write() as connection:
            return apply_writes(connection, orders, self.now)

    def as_sent(self, new: NewQueueMessage) -> Model:
        delay = new.delay_seconds or 0
        expires_at = self.now + RETENTION_SECONDS * 1000
        receipt = new.receipt if delay else None
        return Model(new.message_id, new.priority, self.now, self.now + delay * 1000, expires_at, receipt)

    def is_good(self, receipt: Receipt) -> bool:
        message = self.model.get(receipt[0])
        return message is not None and message.is_good(receipt, self.now)

    def change(self, id: str, **changes: Any) -> None:
        self.model[id] = replace(self.model[id], **changes)

    def check_taken(self, wanted: list[int], answers: list[Any]) -> None:
        """Exactly the first visible messages, each given to one receiver, under a new receipt."""
        expected = in_order([each for each in self.model.values() if each.is_active(self.now)])[: sum(wanted)]
        taken = [each for answer in answers for each in answer]
        assert [each.message_id for each in taken] == [each.id for each in expected]
        assert all(len(answer) <= count for answer, count in zip(answers, wanted, strict=True))
        for each, before in zip(taken, expected, strict=True):
            assert each.dequeue_count == before.dequeue_count + 1
            assert each.receipt != before.receipt or before.dequeue_count == 0
            self.change(
                each.message_id,
                visible_at=self.now + VISIBILITY_SECONDS * 1000,
                receipt=each.receipt,
                dequeue_count=each.dequeue_count,
            )


def test_queues_match_their_model(database: Database) -> None:
    walk(QueueMachine, database, walks=15, steps=25)
