"""Queues and their messages, as workers use them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

import uuid_utils
from sqlalchemy import Connection

from flowserver.base.errors import (
    InternalServerError,
    InvalidArgument,
    InvalidQueueName,
    MessageNotExist,
    QueueAlreadyExist,
    QueueNameLengthError,
    QueueNotExist,
    ReceiptHandleError,
)
from flowserver.base.limits import Limits
from flowserver.base.names import QUEUE_NAME, QUEUE_NAME_CHARACTERS_MAX
from flowserver.engine.engine import Engine
from flowserver.engine.queues.queues import new_receipt
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.held_requests import HeldRequests
from flowserver.operations.pages import Page
from flowserver.operations.repeated_writes import is_own_row
from flowserver.operations.span_links import traceparent_of_request
from flowserver.operations.text_rules import check_no_nul
from flowserver.store.queues.depths import Depth, depths_of_queues
from flowserver.store.queues.message_writes import PRIORITY_DEFAULT, NewQueueMessage
from flowserver.store.queues.messages import (
    Counts,
    QueueMessage,
    Receipt,
    count_messages,
    delete_messages,
    peek_messages,
)
from flowserver.store.queues.queues import QueueRow, delete_queue, find_queue, insert_queue, list_queues, update_queue

MESSAGE_BYTES_MIN = 1_024
RETENTION_SECONDS_MIN = 60
PRIORITY_MAX = 16
LIST_MAX = 1_000
DEPTHS_MAX = 100
"""Queues or topics on a page with depths: each costs a count of its own, which ends at DEPTH_MAX."""

DELETED_AT_ONCE = 1_000

T = TypeVar("T")


def check_depths(count: int) -> None:
    """Raises InvalidArgument if a page has too many items for depths."""
    if count > DEPTHS_MAX:
        raise InvalidArgument(f"a page with depths has at most {DEPTHS_MAX} items: give a limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAttributes:
    """Attributes of a queue as a caller gives them; None for those left out."""

    delay_seconds: int | None = None
    message_bytes_max: int | None = None
    retention_seconds: int | None = None
    visibility_seconds: int | None = None
    polling_seconds: int | None = None
    is_logged: bool | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The attributes that the caller gave."""
        return {name: value for name, value in asdict(self).items() if value is not None}


DEFAULTS: Final = QueueAttributes(
    delay_seconds=0,
    message_bytes_max=65_536,
    retention_seconds=345_600,
    visibility_seconds=30,
    polling_seconds=0,
    is_logged=False,
)
"""Attributes of a queue that is created without; `is_logged` is kept and shown, and changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """A message that a caller sends; None for `delay_seconds` is the queue's own delay."""

    body: str
    delay_seconds: int | None = None
    priority: int = PRIORITY_DEFAULT


class QueueOperations:
    """Operations on queues and their messages.

    All raise InvalidQueueName, and InvalidArgument for a queue that a broker keeps; all but `create` QueueNotExist.
    """

    def __init__(self, engine: Engine, audit: AuditLog, held: HeldRequests) -> None:
        self._engine = engine
        self._held = held
        self._audit = audit

    @audited("queues.create", "queues/{name}")
    async def create(self, name: str, attributes: QueueAttributes) -> bool:
        """Create a queue; False if it exists with the same attributes. Raises QueueAlreadyExist, InvalidArgument."""
        self._check_name(name)
        _check_attributes(attributes, self._engine.limits)
        now = self._engine.clock.now_ms()
        row = QueueRow(name=name, created_at=now, modified_at=now, **{**DEFAULTS.given, **attributes.given})
        found, is_new = await self._engine.committer.write_once(
            lambda connection, earlier: _create(connection, earlier, row), by_caller=True
        )
        if replace(found, created_at=now, modified_at=now) != row:
            raise QueueAlreadyExist(f"queue {name} exists with other attributes")
        return is_new

    @audited("queues.update", "queues/{name}")
    async def set_attributes(self, name: str, attributes: QueueAttributes) -> None:
        """Change the attributes that are given; they apply to messages sent or received from now on."""
        self._check_name(name)
        _check_attributes(attributes, self._engine.limits)
        now = self._engine.clock.now_ms()
        if not await self._write(lambda connection: update_queue(connection, name, attributes.given, now)):
            raise _no_queue(name)

    async def describe(self, name: str) -> tuple[QueueRow, Counts]:
        """A queue, and how many messages it has."""
        self._check_name(name)
        now = self._engine.clock.now_ms()

        def read(connection: Connection) -> tuple[QueueRow, Counts]:
            return _require(connection, name), count_messages(connection, name, now)

        return await self._engine.slow_reads.ask(read)

    async def list(self, *, prefix: str, marker: str, limit: int | None) -> Page[QueueRow]:
        """Queues by name; the token is the name that the next page begins with."""
        size = LIST_MAX if limit is None else limit
        if not 1 <= size <= LIST_MAX:
            raise InvalidArgument(f"the number of queues to return must be between 1 and {LIST_MAX}")
        check_no_nul("the prefix", prefix + marker)
        rows = await self._engine.slow_reads.ask(partial(list_queues, prefix=prefix, from_name=marker, limit=size + 1))
        return Page(rows[:size], rows[size].name if len(rows) > size else None)

    async def depths(self, names: Sequence[str]) -> dict[str, Depth]:
        """How deep these queues are, DEPTHS_MAX at most; raises InvalidArgument."""
        check_depths(len(names))
        return await self._engine.slow_reads.ask(partial(depths_of_queues, names=names))

    @audited("queues.delete", "queues/{name}")
    async def delete(self, name: str) -> None:
        """Delete a queue and all its messages, the messages first. Deleting a missing queue succeeds."""
        self._check_name(name)
        while await self._write(partial(delete_messages, queue=name, limit=DELETED_AT_ONCE)) == DELETED_AT_ONCE:
            pass
        await self._write(partial(_delete, name=name))
        self._engine.queues.note_sent(name, 0)  # wakes long polls on this queue, here and on other nodes

    @audited("queues.purge", "queues/{name}")
    async def purge(self, name: str) -> int:
        """Delete the messages of a queue, received and delayed ones too, and return their number. The queue stays.

        Messages that are sent meanwhile may be among them.
        """
        _, counts = await self.describe(name)
        rest = counts.active + counts.inactive + counts.delayed
        purged = 0
        while purged < rest:
            deleted = await self._write(partial(delete_messages, queue=name, limit=DELETED_AT_ONCE))
            if not deleted:
                break
            purged += deleted
        return purged

    @audited("queues.send", "queues/{name}")
    async def send(self, name: str, messages: Sequence[OutgoingMessage]) -> Sequence[QueueMessage]:
        """Send messages, all or none. Raises InvalidArgument, ResourceThrottled, DiskAlmostFull."""
        self._check_name(name)
        limits = self._engine.limits
        _check_count(len(messages), limits)
        for each in messages:
            _check_message(each, limits)
        if sum(len(each.body.encode()) for each in messages) > limits.queue_message_bytes_max:
            raise InvalidArgument(f"the bodies have more than {limits.queue_message_bytes_max} bytes together")
        self._engine.disk.require()
        return await self._engine.queues.send(
            name, [_new(each, traceparent_of_request()) for each in messages], by_caller=True
        )

    async def receive(self, name: str, *, count: int = 1, wait_seconds: int | None = None) -> Sequence[QueueMessage]:
        """Receive messages, at least one. Without `wait_seconds` the queue's own wait applies.

        Raises MessageNotExist if none came in time, InvalidArgument, ResourceThrottled.
        """
        self._check_name(name)
        limits = self._engine.limits
        _check_count(count, limits)
        if wait_seconds is not None:
            _check_range("the seconds to wait", wait_seconds, 0, limits.queue_polling_seconds_max)
        with self._held.take():
            messages = await self._engine.queues.receive(name, count, wait_seconds, by_caller=True)
        if not messages:
            raise MessageNotExist
        return messages

    async def peek(self, name: str, *, count: int = 1) -> Sequence[QueueMessage]:
        """The messages that would be received next, unchanged. Raises MessageNotExist, InvalidArgument."""
        self._check_name(name)
        _check_count(count, self._engine.limits)
        now = self._engine.clock.now_ms()

        def read(connection: Connection) -> Sequence[QueueMessage]:
            _require(connection, name)
            return peek_messages(connection, name, count, now)

        messages = await self._engine.reader.ask(read, by_caller=True)
        if not messages:
            raise MessageNotExist
        return messages

    async def delete_messages(self, name: str, handles: Sequence[str]) -> Sequence[InvalidArgument | Any]:
        """Delete received messages. Returns for each None or its error: ReceiptHandleError or MessageNotExist."""
        self._check_name(name)
        _check_count(len(handles), self._engine.limits)
        receipts = [read_handle(handle) for handle in handles]
        known = [receipt for receipt in receipts if receipt is not None]
        deleted = dict(zip(known, await self._engine.queues.delete(name, known, by_caller=True), strict=True))
        return [_fate(receipt, deleted) for receipt in receipts]

    async def change_visibility(self, name: str, handle: str, visibility_seconds: int) -> tuple[str, int]:
        """Hide a received message for that long from now; returns its new handle and the end of that time (ms).

        Raises ReceiptHandleError, MessageNotExist, InvalidArgument.
        """
        self._check_name(name)
        seconds_max = self._engine.limits.queue_visibility_seconds_max
        _check_range("the visibility time-out", visibility_seconds, 1, seconds_max)
        receipt = read_handle(handle)
        if receipt is None:
            raise ReceiptHandleError
        changed = await self._engine.queues.hide(name, receipt, visibility_seconds, by_caller=True)
        if changed is None:
            raise MessageNotExist("the receipt handle is no longer good: the message is gone or visible again")
        return make_handle(*changed[0]), changed[1]

    def _check_name(self, name: str) -> None:
        check_queue_name(name)
        self._engine.queues.check_is_here(name)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        return await self._engine.committer.write(change, by_caller=True)


def check_queue_name(name: str) -> None:
    """Raises InvalidQueueName, or QueueNameLengthError if the name's only mistake is its length."""
    if not QUEUE_NAME.match(name):
        raise InvalidQueueName
    if len(name) > QUEUE_NAME_CHARACTERS_MAX:
        raise QueueNameLengthError


def make_handle(message_id: str, receipt: str) -> str:
    """The handle by which a receiver names a message; URLs can contain it without escapes."""
    return f"{message_id}-{receipt}"


def read_handle(handle: str) -> Receipt | None:
    """The message id and the receipt in a handle; None if the text is no handle."""
    message_id, hyphen, receipt = handle.strip().rpartition("-")
    is_ours = hyphen and message_id and receipt and handle.isascii() and "\0" not in handle
    return (message_id, receipt) if is_ours else None


def _create(connection: Connection, earlier: tuple[QueueRow, bool] | None, row: QueueRow) -> tuple[QueueRow, bool]:
    """Create the queue; returns it, or the existing one, and whether it is new."""
    if insert_queue(connection, row):
        return row, True
    known = find_queue(connection, row.name)
    if known is None:  # another node has just deleted it
        raise InternalServerError
    return known, is_own_row(row, known, earlier)


def _delete(connection: Connection, name: str) -> None:
    """The queue first: what is being sent to it waits for that, or this for that."""
    delete_queue(connection, name)
    while delete_messages(connection, name, DELETED_AT_ONCE):
        pass


def _require(connection: Connection, name: str) -> QueueRow:
    row = find_queue(connection, name)
    if row is None:
        raise _no_queue(name)
    return row


def _no_queue(name: str) -> QueueNotExist:
    return QueueNotExist(f"queue {name} does not exist")


def _fate(receipt: Receipt | None, deleted: dict[Receipt, bool]) -> ReceiptHandleError | MessageNotExist | None:
    if receipt is None:
        return ReceiptHandleError()
    if not deleted[receipt]:
        return MessageNotExist("the receipt handle is no longer good: the message is gone or visible again")
    return None


def _new(message: OutgoingMessage, traceparent: str | None) -> NewQueueMessage:
    return NewQueueMessage(
        message_id=uuid_utils.uuid7().hex.upper(),
        body=message.body,
        delay_seconds=message.delay_seconds,
        priority=message.priority,
        receipt=new_receipt(),
        traceparent=traceparent or "",
    )


def _check_message(message: OutgoingMessage, limits: Limits) -> None:
    if not message.body:
        raise InvalidArgument("the body is missing")
    check_no_nul("the body", message.body)
    if message.delay_seconds is not None:
        _check_range("the delay", message.delay_seconds, 0, limits.queue_delay_seconds_max)
    _check_range("the priority", message.priority, 1, PRIORITY_MAX)


def _check_attributes(attributes: QueueAttributes, limits: Limits) -> None:
    ranges = {
        "delay_seconds": ("the delay", 0, limits.queue_delay_seconds_max),
        "message_bytes_max": ("the maximum message size", MESSAGE_BYTES_MIN, limits.queue_message_bytes_max),
        "retention_seconds": ("the retention period", RETENTION_SECONDS_MIN, limits.queue_retention_seconds_max),
        "visibility_seconds": ("the visibility time-out", 1, limits.queue_visibility_seconds_max),
        "polling_seconds": ("the seconds to wait", 0, limits.queue_polling_seconds_max),
    }
    for name, value in attributes.given.items():
        if name in ranges:
            what, low, high = ranges[name]
            _check_range(what, value, low, high)


def _check_count(count: int, limits: Limits) -> None:
    _check_range("the number of messages", count, 1, limits.queue_batch_max)


def _check_range(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidArgument(f"{what} must be from {low} to {high}")
