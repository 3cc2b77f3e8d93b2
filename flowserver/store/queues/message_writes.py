"""Writes to the messages of queues (send, take, delete, hide), and their execution: many in one transaction.

Runs in the writer's thread. A write that fails returns an error of its own; the others are still applied.
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
    """A message to send. If it is delayed, its receipt handle is made from `receipt`, which must be fresh and random.

    `delay_seconds` None means the queue's delay. `priority` is 1 (first) to 16.
    `traceparent` names the span that sends it; "" for none.
    """

    message_id: str
    body: str
    delay_seconds: int | None = None
    priority: int = PRIORITY_DEFAULT
    receipt: str | None = None
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Send:
    """Put messages into a queue. Returns the `QueueMessage`s, in order."""

    queue: str
    messages: Sequence[NewQueueMessage]


@dataclass(frozen=True, slots=True)
class Take:
    """Receive up to `count` messages under a receipt, which must be fresh. Returns `QueueMessage`s, perhaps none."""

    queue: str
    count: int
    receipt: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete received messages. Returns a boolean for each: whether its receipt was valid.

    `found` collects the receipts that were valid at any attempt, for a retry after a commit whose answer was lost.
    """

    queue: str
    receipts: Sequence[Receipt]
    found: set[Receipt] = field(default_factory=set, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hide:
    """Hide a received message for `seconds` from now, under the receipt `fresh`; 0 seconds puts it back.

    Returns the instant (ms) until which it is hidden, or None if the receipt was not valid.
    """

    queue: str
    receipt: Receipt
    seconds: int
    fresh: str


QueueWrite = Send | Take | Delete | Hide


def messages_of(write: QueueWrite) -> int:
    """The number of messages that a write is about, which is the most that it brings into memory."""
    match write:
        case Send(_, messages):
            return len(messages)
        case Take(_, count):
            return count
        case Delete(_, receipts):
            return len(receipts)
        case Hide():
            return 1


def apply_writes(connection: Connection, writes: Sequence[QueueWrite], now_ms: int) -> list[Any]:
    """Apply all writes, takes last, so that they get what the others send. Returns the result of each.

    The same writes can be applied again: what the first attempt deleted counts as deleted.
    """
    queues = hold_queues(connection, {write.queue for write in writes})
    answers: dict[int, Any] = {}
    takes: dict[str, list[tuple[int, Take]]] = defaultdict(list)
    sent: list[tuple[str, QueueMessage]] = []
    for number, write in enumerate(writes):
        queue = queues.get(write.queue)
        if queue is None:
            answers[number] = no_queue(write.queue)
        elif isinstance(write, Send):
            answers[number] = _new_messages(queue, write.messages, now_ms)
            if not isinstance(answers[number], Exception):
                sent += [(queue.name, each) for each in answers[number]]
        elif isinstance(write, Take):
            takes[queue.name].append((number, write))
        elif isinstance(write, Hide):
            answers[number] = _hide(connection, write, now_ms)
    send_messages(connection, sent, now_ms)
    _delete(connection, [(n, each) for n, each in enumerate(writes) if isinstance(each, Delete)], answers, now_ms)
    for name, wanted in takes.items():
        _take(connection, queues[name], wanted, answers, now_ms)
    return [answers[number] for number in range(len(writes))]


def no_queue(name: str) -> QueueNotExist:
    """The error for a queue that does not exist."""
    return QueueNotExist(f"queue {name} does not exist")


def _new_messages(
    queue: QueueRow, messages: Sequence[NewQueueMessage], now_ms: int
) -> list[QueueMessage] | InvalidArgument:
    longest = max((len(each.body.encode()) for each in messages), default=0)
    if longest > queue.message_bytes_max:
        return InvalidArgument(
            f"the body has {longest} bytes, and queue {queue.name} takes {queue.message_bytes_max} at most"
        )
    return [
        new_message(
            each,
            now_ms,
            delay_seconds=queue.delay_seconds if each.delay_seconds is None else each.delay_seconds,
            retention_seconds=queue.retention_seconds,
        )
        for each in messages
    ]


def new_message(
    new: NewQueueMessage, now_ms: int, *, delay_seconds: int = 0, retention_seconds: int = 0
) -> QueueMessage:
    """The message as it is when it is sent; without a delay it has no receipt."""
    return QueueMessage(
        message_id=new.message_id,
        body=new.body,
        body_md5=md5_of(new.body),
        priority=new.priority,
        visible_at=now_ms + delay_seconds * 1000,
        enqueued_at=now_ms,
        expires_at=now_ms + retention_seconds * 1000,
        first_dequeued_at=None,
        dequeue_count=0,
        receipt=new.receipt if delay_seconds else None,
        traceparent=new.traceparent or None,
    )


def md5_of(body: str) -> str:
    """The MD5 of a body as the API shows it: of its UTF-8, in upper-case hexadecimal."""
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest().upper()


def _hide(connection: Connection, write: Hide, now_ms: int) -> int | None:
    until_ms = now_ms + write.seconds * 1000
    message_id, receipt = write.receipt
    is_done = change_visibility(
        connection, write.queue, message_id, receipt, fresh=write.fresh, until_ms=until_ms, now_ms=now_ms
    )
    return until_ms if is_done else None


def _delete(connection: Connection, writes: list[tuple[int, Delete]], answers: dict[int, Any], now_ms: int) -> None:
    receipts: dict[str, list[Receipt]] = defaultdict(list)
    for number, write in writes:
        if number not in answers:
            receipts[write.queue] += write.receipts
    gone = {name: delete_received(connection, name, each, now_ms) for name, each in receipts.items()}
    for number, write in writes:
        if number not in answers:
            done = gone[write.queue] | _deleted_before(connection, write)
            answers[number] = [receipt in done for receipt in write.receipts]
            write.found.update(receipt for receipt in write.receipts if receipt in done)


def _deleted_before(connection: Connection, write: Delete) -> set[Receipt]:
    """The receipts that an earlier, committed attempt deleted: those of `found` whose messages are gone."""
    if not write.found:
        return set()
    there = existing_messages(connection, write.queue, [message_id for message_id, _ in write.found])
    return {receipt for receipt in write.found if receipt[0] not in there}


def _take(
    connection: Connection, queue: QueueRow, wanted: list[tuple[int, Take]], answers: dict[int, Any], now_ms: int
) -> None:
    """One receive for all takes; the first take gets the first messages."""
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
