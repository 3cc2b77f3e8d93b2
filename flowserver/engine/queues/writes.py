"""What is done to messages of queues, as data, and how it is done: many orders in one transaction, few statements.

Runs in the writer's thread. An order that cannot be carried out comes to an error of its own and disturbs no other.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument, QueueNotExist
from flowserver.store.queues.messages import (
    QueueMessage,
    Receipt,
    change_visibility,
    delete_received,
    existing_messages,
    receive_messages,
    send_messages,
)
from flowserver.store.queues.queues import QueueRow, hold_queues

PRIORITY_DEFAULT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQueueMessage:
    """A message to be sent. `receipt` is what the receipt handle of a delayed one is made of, fresh and random.

    `delay_seconds` is the queue's if None. `priority` goes from 1, first, to 16.
    """

    message_id: str
    body: str
    delay_seconds: int | None = None
    priority: int = PRIORITY_DEFAULT
    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Put messages into a queue. Comes to the `QueueMessage`s, in order."""

    queue: str
    messages: Sequence[NewQueueMessage]


@dataclass(frozen=True, slots=True)
class Take:
    """Receive up to `count` messages under a receipt, which must be fresh. Comes to `QueueMessage`s, perhaps none."""

    queue: str
    count: int
    receipt: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete received messages. Comes to a boolean for each: whether the receipt was good.

    `found` collects the receipts that were good at any try, for a try after a commit whose answer was lost.
    """

    queue: str
    receipts: Sequence[Receipt]
    found: set[Receipt] = field(default_factory=set, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hide:
    """Hide a received message for so long from now, under a fresh receipt; with 0 seconds it is put back.

    Comes to the instant (ms) until which it is hidden; None if the receipt was not good.
    """

    queue: str
    receipt: Receipt
    seconds: int
    fresh: str


QueueOperation = Send | Take | Delete | Hide


def messages_of(order: QueueOperation) -> int:
    """How many messages an order is about, and at most brings into memory."""
    match order:
        case Send(_, messages):
            return len(messages)
        case Take(_, count):
            return count
        case Delete(_, receipts):
            return len(receipts)
        case Hide():
            return 1


def carry_out(connection: Connection, orders: Sequence[QueueOperation], now_ms: int) -> list[Any]:
    """Carry out all orders, receives last: they get what the others send. Returns what each comes to.

    The same orders may be tried again: what a first try has deleted then counts as deleted.
    """
    queues = hold_queues(connection, {order.queue for order in orders})
    answers: dict[int, Any] = {}
    takes: dict[str, list[tuple[int, Take]]] = defaultdict(list)
    sent: list[tuple[str, QueueMessage]] = []
    for number, order in enumerate(orders):
        queue = queues.get(order.queue)
        if queue is None:
            answers[number] = QueueNotExist(f"queue {order.queue} does not exist")
        elif isinstance(order, Send):
            answers[number] = _new_messages(queue, order.messages, now_ms)
            if not isinstance(answers[number], Exception):
                sent += [(queue.name, each) for each in answers[number]]
        elif isinstance(order, Take):
            takes[queue.name].append((number, order))
        elif isinstance(order, Hide):
            answers[number] = _hide(connection, order, now_ms)
    send_messages(connection, sent, now_ms)
    _delete(connection, [(n, each) for n, each in enumerate(orders) if isinstance(each, Delete)], answers, now_ms)
    for name, wanted in takes.items():
        _take(connection, queues[name], wanted, answers, now_ms)
    return [answers[number] for number in range(len(orders))]


def _new_messages(
    queue: QueueRow, messages: Sequence[NewQueueMessage], now_ms: int
) -> list[QueueMessage] | InvalidArgument:
    longest = max((len(each.body.encode()) for each in messages), default=0)
    if longest > queue.message_bytes_max:
        return InvalidArgument(
            f"the body has {longest} bytes, and queue {queue.name} takes {queue.message_bytes_max} at most"
        )
    return [_new_message(queue, each, now_ms) for each in messages]


def _new_message(queue: QueueRow, new: NewQueueMessage, now_ms: int) -> QueueMessage:
    delay_seconds = queue.delay_seconds if new.delay_seconds is None else new.delay_seconds
    return QueueMessage(
        message_id=new.message_id,
        body=new.body,
        body_md5=md5_of(new.body),
        priority=new.priority,
        visible_at=now_ms + delay_seconds * 1000,
        enqueued_at=now_ms,
        expires_at=now_ms + queue.retention_seconds * 1000,
        first_dequeued_at=None,
        dequeue_count=0,
        receipt=new.receipt if delay_seconds else None,
    )


def md5_of(body: str) -> str:
    """The MD5 of a body as clients are told it: of its UTF-8, in upper-case hexadecimal."""
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest().upper()


def _hide(connection: Connection, order: Hide, now_ms: int) -> int | None:
    until_ms = now_ms + order.seconds * 1000
    message_id, receipt = order.receipt
    is_done = change_visibility(
        connection, order.queue, message_id, receipt, fresh=order.fresh, until_ms=until_ms, now_ms=now_ms
    )
    return until_ms if is_done else None


def _delete(connection: Connection, orders: list[tuple[int, Delete]], answers: dict[int, Any], now_ms: int) -> None:
    receipts: dict[str, list[Receipt]] = defaultdict(list)
    for number, order in orders:
        if number not in answers:
            receipts[order.queue] += order.receipts
    gone = {name: delete_received(connection, name, each, now_ms) for name, each in receipts.items()}
    for number, order in orders:
        if number not in answers:
            done = gone[order.queue] | _deleted_before(connection, order)
            answers[number] = [receipt in done for receipt in order.receipts]
            order.found.update(receipt for receipt in order.receipts if receipt in done)


def _deleted_before(connection: Connection, order: Delete) -> set[Receipt]:
    """What an earlier try has deleted, if that was committed; a message that is still there was not deleted."""
    if not order.found:
        return set()
    there = existing_messages(connection, order.queue, [message_id for message_id, _ in order.found])
    return {receipt for receipt in order.found if receipt[0] not in there}


def _take(
    connection: Connection, queue: QueueRow, wanted: list[tuple[int, Take]], answers: dict[int, Any], now_ms: int
) -> None:
    """One receive for all who ask; whoever asked first gets the first messages."""
    found = receive_messages(
        connection,
        queue.name,
        sum(take.count for _, take in wanted),
        receipt=wanted[0][1].receipt,
        until_ms=now_ms + queue.visibility_seconds * 1000,
        now_ms=now_ms,
    )
    for number, take in wanted:
        answers[number], found = found[: take.count], found[take.count :]
