"""Queues: sends, receives and long polls. A waiting poll holds neither a thread nor a database connection.

Long polls wait in memory, in order of arrival for each queue. A send on this node also receives for the first polls:
their messages are received in the transaction that sends them. Otherwise one scan for all polls of the queue finds
messages, after a notice from another node or when the next message becomes visible. Nothing here survives a restart: a
client that has lost its connection asks again.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import uuid_utils
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import InvalidArgument, QueueNotExist, ResourceThrottled
from flowserver.concurrency.coalescer import Coalescer
from flowserver.concurrency.futures import resolve
from flowserver.engine.context import EngineContext
from flowserver.engine.queues.broker_sending import publish
from flowserver.engine.queues.long_polls import LongPoll, LongPolls
from flowserver.engine.queues.shared_receives import SharedScan
from flowserver.invokers.broker_clients import Outlets
from flowserver.store.queues.message_writes import (
    Delete,
    Hide,
    NewQueueMessage,
    QueueWrite,
    Send,
    Take,
    apply_writes,
    messages_of,
    no_queue,
)
from flowserver.store.queues.messages import QueueMessage, Receipt, ScanResult
from flowserver.store.sql.errors import reason_of

log = logging.getLogger(__name__)

SCAN_SECONDS = 5.0
"""The longest time between two scans of a queue with long polls, in case a notice is lost or the clock is stepped."""

RECEIPT_CHARACTERS = 24
"""Hexadecimal: 90 random bits."""


class Queues:
    """One node's part in queues. Make and use it inside one event loop."""

    def __init__(self, context: EngineContext, outlets: Outlets) -> None:
        self._clock = context.clock
        self._membership = context.membership
        self._limits = context.limits
        self._outlets = outlets
        self._writes: Coalescer[QueueWrite, Any] = Coalescer(
            context.committer,
            lambda c, writes: apply_writes(c, writes, self._clock.now_ms()),
            self._limits.pending_messages_max,
            weigh=messages_of,
        )
        self._long_polls: dict[str, LongPolls] = {}
        self._flowing: set[str] = set()
        self._scan = SharedScan(context.reader, self._clock)
        self.waiting = 0
        """How many long polls wait."""
        self._is_released = False

    async def send(
        self, queue: str, messages: Sequence[NewQueueMessage], *, by_caller: bool = False
    ) -> list[QueueMessage]:
        """Put all messages into a queue, or none. A message whose id exists already stays as it is.

        Raises QueueNotExist, InvalidArgument for a body that is too long, ResourceThrottled when `by_caller`. For a
        queue that a broker keeps, see `publish`.
        """
        if queue in self._outlets:
            return await publish(self._outlets, queue, messages, self._clock.now_ms())
        sending = self._writes.add(Send(queue, messages), by_caller=by_caller)
        self._serve(queue, len(messages))
        sent: list[QueueMessage] = await asyncio.shield(sending)
        self.note_sent(queue, 0)
        return sent

    def send_in(
        self, connection: Connection, queue: str, messages: Sequence[NewQueueMessage], now_ms: int
    ) -> list[QueueMessage]:
        """The same as part of another transaction, in the writer's thread; call `note_sent` after its commit.

        Also raises InvalidArgument for a queue that a broker keeps: a broker takes part in no transaction.
        """
        self.check_is_here(queue)
        (sent,) = apply_writes(connection, [Send(queue, messages)], now_ms)
        if isinstance(sent, Exception):
            raise sent
        return list(sent)

    def check_is_here(self, queue: str) -> None:
        """Raises InvalidArgument for a queue that a broker keeps. Does not check whether another queue exists."""
        if queue in self._outlets:
            raise InvalidArgument(
                f"queue {queue} is kept by a broker, as the setting queues says, and cannot be used here"
            )

    def note_sent(self, queue: str, count: int) -> None:
        """`count` messages were sent: receive for the long polls of this node, and notify the other nodes."""
        self._serve(queue, count)
        self.scan_soon(queue)
        if not self._membership.is_alone:
            self._membership.announce().queues.add(queue)

    async def receive(
        self, queue: str, count: int, wait_seconds: int | None = None, *, by_caller: bool = False
    ) -> list[QueueMessage]:
        """Receive up to `count` messages. Waits for the first for `wait_seconds`; None means the queue's own time.

        Returns [] if no message came in time or the server stops. Raises QueueNotExist, and ResourceThrottled when
        `by_caller`.
        """
        if queue in self._flowing and (messages := await self._take(queue, count, by_caller=by_caller)):
            return messages
        if not wait_seconds or self._is_full:
            found = await self._scan.scan(queue, 1, by_caller=by_caller)
            if found is None:
                raise no_queue(queue)
            if found.ready and (messages := await self._take(queue, count, by_caller=by_caller)):
                return messages
            wait_seconds = found.polling_seconds if wait_seconds is None else 0
        return await self._wait(queue, count, wait_seconds) if wait_seconds else []

    async def delete(self, queue: str, receipts: Sequence[Receipt], *, by_caller: bool = False) -> list[bool]:
        """Delete received messages; returns for each whether its receipt was still valid. Raises as `send`."""
        deleted: list[bool] = await self._writes.add(Delete(queue, receipts), by_caller=by_caller)
        return deleted

    async def hide(
        self, queue: str, receipt: Receipt, seconds: int, *, by_caller: bool = False
    ) -> tuple[Receipt, int] | None:
        """Hide a received message for `seconds` from now; returns its new receipt, and the instant (ms) of its return.

        None if the receipt was no longer valid. Raises as `send`.
        """
        fresh = new_receipt()
        until: int | None = await self._writes.add(Hide(queue, receipt, seconds, fresh), by_caller=by_caller)
        if until is None:
            return None
        self.note_sent(queue, 0)
        return (receipt[0], fresh), until

    @property
    def _is_full(self) -> bool:
        """Whether no further poll may wait; a receive is then answered after one scan."""
        return self.waiting >= self._limits.queue_polls_max

    def release(self) -> None:
        """The server stops: end all long polls, and start no more."""
        self._is_released = True
        for polls in self._long_polls.values():
            for poll in list(polls.waiting):
                poll.end()

    # Taking

    async def _take(self, queue: str, count: int, *, by_caller: bool) -> list[QueueMessage]:
        taking = self._writes.add(Take(queue, count, new_receipt()), by_caller=by_caller)
        try:
            messages: list[QueueMessage] = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(partial(self._put_back, queue))
            raise
        except QueueNotExist:
            self._note_flow(queue, False)
            raise
        self._note_flow(queue, len(messages) == count)
        return messages

    def _note_flow(self, queue: str, is_flowing: bool) -> None:
        """Whether the next receive skips the scan, which saves a commit only if the queue is empty."""
        if is_flowing:
            self._flowing.add(queue)
        else:
            self._flowing.discard(queue)

    def _put_back(self, queue: str, taking: asyncio.Future[list[QueueMessage]]) -> None:
        """Make received messages visible again: their client has gone, and other clients can have them now."""
        if taking.cancelled() or taking.exception() is not None:
            return
        for message in taking.result():
            receipt = (message.message_id, message.receipt or "")
            hiding = self._writes.add(Hide(queue, receipt, 0, new_receipt()))
            hiding.add_done_callback(partial(self._has_put_back, queue))

    def _has_put_back(self, queue: str, hiding: asyncio.Future[int | None]) -> None:
        if not hiding.cancelled() and hiding.exception() is None:
            self.note_sent(queue, 0)

    # Waiting

    async def _wait(self, queue: str, count: int, seconds: float) -> list[QueueMessage]:
        if self._is_released or self._is_full:
            return []
        poll = LongPoll(count, asyncio.get_running_loop().create_future())
        polls = self._long_polls.setdefault(queue, LongPolls())
        polls.waiting[poll] = None
        polls.members += 1
        self.waiting += 1
        self.scan_soon(queue)
        try:
            await asyncio.wait([poll.answer], timeout=seconds)
            if poll in polls.waiting:
                poll.end()
            poll.is_over = True
            return await asyncio.shield(poll.answer)
        except asyncio.CancelledError:
            if not poll.answer.cancel():
                self._put_back(queue, poll.answer)
            raise
        finally:
            self._leave(queue, polls, poll)

    def _leave(self, queue: str, polls: LongPolls, poll: LongPoll) -> None:
        polls.waiting.pop(poll, None)
        polls.members -= 1
        self.waiting -= 1
        if not polls.members:
            del self._long_polls[queue]
            if polls.timer is not None:
                polls.timer.cancel()

    def _serve(self, queue: str, messages: int) -> None:
        """Receive for the first long polls, as `messages` messages are in the queue or being sent."""
        polls = self._long_polls.get(queue)
        while polls is not None and polls.waiting and messages > 0:
            poll, _ = polls.waiting.popitem(last=False)
            messages -= poll.count
            taking = self._writes.add(Take(queue, poll.count, new_receipt()))
            taking.add_done_callback(partial(self._served, queue, poll))

    def _served(self, queue: str, poll: LongPoll, taking: asyncio.Future[list[QueueMessage]]) -> None:
        if poll.answer.done():  # the client has gone
            self._put_back(queue, taking)
        elif isinstance(error := taking.exception(), Exception):
            resolve(poll.answer, error)
        elif messages := taking.result():
            resolve(poll.answer, messages)
            self._note_flow(queue, len(messages) == poll.count)
        elif poll.is_over or self._is_released:
            poll.end()
        elif (polls := self._long_polls.get(queue)) is not None:
            polls.waiting[poll] = None
            polls.waiting.move_to_end(poll, last=False)
        self.scan_soon(queue)

    def scan_soon(self, queue: str) -> None:
        """Scan the queue for its long polls, if it has any. Calls before the scan begins share it."""
        polls = self._long_polls.get(queue)
        if polls is None:
            return
        polls.is_stale = True
        if polls.scan is None:
            polls.scan = asyncio.create_task(self._scan_for(queue, polls), name="scan of a queue")

    async def _scan_for(self, queue: str, polls: LongPolls) -> None:
        try:
            while polls.is_stale and polls.waiting:
                polls.is_stale = False
                found = await self._scan.scan(queue, len(polls.waiting))
                self._serve_all(queue, polls, found)
        except (SQLAlchemyError, ResourceThrottled) as error:
            log.warning("the scan of queue %s for its long polls failed and is repeated: %s", queue, reason_of(error))
            self._wake_in(queue, polls, SCAN_SECONDS)
        finally:
            polls.scan = None

    def _serve_all(self, queue: str, polls: LongPolls, found: ScanResult | None) -> None:
        if found is None:
            while polls.waiting:
                resolve(polls.waiting.popitem()[0].answer, no_queue(queue))
            return
        self._serve(queue, found.ready)
        seconds = SCAN_SECONDS
        if found.next_at is not None:
            seconds = min(seconds, max(found.next_at - self._clock.now_ms(), 0) / 1000)
        self._wake_in(queue, polls, seconds)

    def _wake_in(self, queue: str, polls: LongPolls, seconds: float) -> None:
        if polls.timer is not None:
            polls.timer.cancel()
        polls.timer = asyncio.get_running_loop().call_later(seconds, self.scan_soon, queue)


def new_receipt() -> str:
    """A random receipt, in characters that need no escaping in a URL."""
    return uuid_utils.uuid4().hex[:RECEIPT_CHARACTERS]
