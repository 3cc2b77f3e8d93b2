"""Queues: sending, receiving, and those who wait for a message, who hold neither a thread nor a connection.

A poll that waits is an entry of its queue's line, in memory. A send of this node takes the first polls of the line
along: their messages are received in the transaction that sends them. Otherwise one look for the whole line finds what
is there, after a notice of another node or when the next message is due to be seen again. Nothing here is kept over a
restart: a client that has lost its connection asks again.
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
from flowserver.base.sharing import give
from flowserver.engine.commit.coalescer import Coalescer
from flowserver.engine.context import EngineContext
from flowserver.engine.queues.broker_queues import publish
from flowserver.engine.queues.long_polls import LongPoll, LongPolls
from flowserver.engine.queues.shared_scan import SharedScan
from flowserver.engine.queues.writes import (
    Delete,
    Hide,
    NewQueueMessage,
    QueueWrite,
    Send,
    Take,
    apply_writes,
    messages_of,
)
from flowserver.invokers.outlets import Outlets
from flowserver.store.queues.messages import QueueMessage, Receipt, Sight
from flowserver.store.sql.errors import reason_of

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 5.0
"""How often a line looks for itself, should another node's notice not be heard, or the clock be stepped."""

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
            context.committer, self._apply_writes, self._limits.pending_messages_max, weigh=messages_of
        )
        self._lines: dict[str, LongPolls] = {}
        self._flowing: set[str] = set()
        self._looks = SharedScan(context.reader, self._clock)
        self._polls = 0
        self._is_released = False

    async def send(
        self, queue: str, messages: Sequence[NewQueueMessage], *, bounded: bool = False
    ) -> list[QueueMessage]:
        """Put messages into a queue; one whose id is there already is left as it is. All or none.

        Raises QueueNotExist, InvalidArgument for a body that is too long, ResourceThrottled when `bounded`. For a queue
        that a broker keeps, see `publish`.
        """
        if queue in self._outlets:
            return await publish(self._outlets, queue, messages, self._clock.now_ms())
        sending = self._writes.add(Send(queue, messages), bounded=bounded)
        self._serve(queue, len(messages))
        sent: list[QueueMessage] = await asyncio.shield(sending)
        self.note_sent(queue, 0)
        return sent

    def send_in(
        self, connection: Connection, queue: str, messages: Sequence[NewQueueMessage], now_ms: int
    ) -> list[QueueMessage]:
        """The same as part of another change, in the writer's thread; call `note_sent` once that is durable.

        Raises also InvalidArgument for a queue that a broker keeps: nothing can be sent there within a transaction.
        """
        self.check_is_here(queue)
        (sent,) = apply_writes(connection, [Send(queue, messages)], now_ms)
        if isinstance(sent, Exception):
            raise sent
        return list(sent)

    def check_is_here(self, queue: str) -> None:
        """Raises InvalidArgument for a queue that a broker keeps; whether any other exists is not looked up."""
        if queue in self._outlets:
            raise InvalidArgument(
                f"queue {queue} is kept by a broker, as the setting queues says, and cannot be used here"
            )

    def note_sent(self, queue: str, count: int) -> None:
        """So many messages were sent; whoever waits for them here or on another node is served."""
        self._serve(queue, count)
        self._look_soon(queue)
        if not self._membership.is_alone:
            self._membership.announce().queues.add(queue)

    async def receive(
        self, queue: str, count: int, wait_seconds: int | None = None, *, bounded: bool = False
    ) -> list[QueueMessage]:
        """Receive up to `count` messages, waiting for the first; None waits for as long as the queue says.

        Empty when nothing came in time or this node stops. Raises QueueNotExist, ResourceThrottled when `bounded`.
        """
        if queue in self._flowing and (messages := await self._take(queue, count, bounded=bounded)):
            return messages
        if not wait_seconds or self._is_full:
            sight = await self._looks.see(queue, 1, bounded=bounded)
            if sight is None:
                raise _no_queue(queue)
            if sight.ready and (messages := await self._take(queue, count, bounded=bounded)):
                return messages
            wait_seconds = sight.polling_seconds if wait_seconds is None else 0
        return await self._wait(queue, count, wait_seconds) if wait_seconds else []

    async def delete(self, queue: str, receipts: Sequence[Receipt], *, bounded: bool = False) -> list[bool]:
        """Delete received messages; for each whether its receipt was still good. Raises as `send`."""
        deleted: list[bool] = await self._writes.add(Delete(queue, receipts), bounded=bounded)
        return deleted

    async def hide(
        self, queue: str, receipt: Receipt, seconds: int, *, bounded: bool = False
    ) -> tuple[Receipt, int] | None:
        """Hide a received message for so long from now; returns its fresh receipt, and until when (ms).

        None if the receipt was no longer good. Raises as `send`.
        """
        fresh = new_receipt()
        until: int | None = await self._writes.add(Hide(queue, receipt, seconds, fresh), bounded=bounded)
        if until is None:
            return None
        self.note_sent(queue, 0)
        return (receipt[0], fresh), until

    @property
    def _is_full(self) -> bool:
        """Whether nobody else may wait; he is answered at once, but not without a look at what is there."""
        return self._polls >= self._limits.queue_polls_max

    @property
    def waiting(self) -> int:
        """How many polls wait."""
        return self._polls

    def look(self, queue: str) -> None:
        """Something may have come into the queue."""
        self._look_soon(queue)

    def release(self) -> None:
        """The server stops: nobody waits any longer."""
        self._is_released = True
        for line in self._lines.values():
            for poll in list(line.polls):
                poll.end()

    # Taking

    async def _take(self, queue: str, count: int, *, bounded: bool) -> list[QueueMessage]:
        taking = self._writes.add(Take(queue, count, new_receipt()), bounded=bounded)
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
        """Whether to receive without a look, which saves a commit only if there is nothing."""
        if is_flowing:
            self._flowing.add(queue)
        else:
            self._flowing.discard(queue)

    def _put_back(self, queue: str, taking: asyncio.Future[list[QueueMessage]]) -> None:
        """Nobody is there who would get the messages; others need not wait until they come back by themselves."""
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
        line = self._lines.setdefault(queue, LongPolls())
        line.polls[poll] = None
        line.members += 1
        self._polls += 1
        self._look_soon(queue)
        try:
            await asyncio.wait([poll.answer], timeout=seconds)
            if poll in line.polls:
                poll.end()
            poll.is_over = True
            return await asyncio.shield(poll.answer)
        except asyncio.CancelledError:
            if not poll.answer.cancel():
                self._put_back(queue, poll.answer)
            raise
        finally:
            self._leave(queue, line, poll)

    def _leave(self, queue: str, line: LongPolls, poll: LongPoll) -> None:
        line.polls.pop(poll, None)
        line.members -= 1
        self._polls -= 1
        if not line.members:
            del self._lines[queue]
            if line.timer is not None:
                line.timer.cancel()

    def _serve(self, queue: str, messages: int) -> None:
        """So many messages are there or on their way: receive them for the first who wait."""
        line = self._lines.get(queue)
        while line is not None and line.polls and messages > 0:
            poll, _ = line.polls.popitem(last=False)
            messages -= poll.count
            taking = self._writes.add(Take(queue, poll.count, new_receipt()))
            taking.add_done_callback(partial(self._served, queue, poll))

    def _served(self, queue: str, poll: LongPoll, taking: asyncio.Future[list[QueueMessage]]) -> None:
        if poll.answer.done():  # its client has gone
            self._put_back(queue, taking)
        elif isinstance(error := taking.exception(), Exception):
            give(poll.answer, error)
        elif messages := taking.result():
            give(poll.answer, messages)
            self._note_flow(queue, len(messages) == poll.count)
        elif poll.is_over or self._is_released:
            poll.end()
        elif (line := self._lines.get(queue)) is not None:
            line.polls[poll] = None
            line.polls.move_to_end(poll, last=False)
        self._look_soon(queue)

    def _look_soon(self, queue: str) -> None:
        """Look what there is for those who wait, once for whatever has happened until then."""
        line = self._lines.get(queue)
        if line is None:
            return
        line.is_stale = True
        if line.looking is None:
            line.looking = asyncio.create_task(self._look(queue, line), name="look")

    async def _look(self, queue: str, line: LongPolls) -> None:
        try:
            while line.is_stale and line.polls:
                line.is_stale = False
                sight = await self._looks.see(queue, len(line.polls))
                self._act(queue, line, sight)
        except (SQLAlchemyError, ResourceThrottled) as error:
            log.warning("who waits for messages of %s is served later: %s", queue, reason_of(error))
            self._wake_in(queue, line, LOOK_AGAIN_SECONDS)
        finally:
            line.looking = None

    def _act(self, queue: str, line: LongPolls, sight: Sight | None) -> None:
        if sight is None:
            while line.polls:
                give(line.polls.popitem()[0].answer, _no_queue(queue))
            return
        self._serve(queue, sight.ready)
        seconds = LOOK_AGAIN_SECONDS
        if sight.next_at is not None:
            seconds = min(seconds, max(sight.next_at - self._clock.now_ms(), 0) / 1000)
        self._wake_in(queue, line, seconds)

    def _wake_in(self, queue: str, line: LongPolls, seconds: float) -> None:
        if line.timer is not None:
            line.timer.cancel()
        line.timer = asyncio.get_running_loop().call_later(seconds, self._look_soon, queue)

    def _apply_writes(self, connection: Connection, writes: Sequence[QueueWrite]) -> Sequence[Any]:
        return apply_writes(connection, writes, self._clock.now_ms())


def new_receipt() -> str:
    """What no other receive has given, in letters that a URL holds as they are."""
    return uuid_utils.uuid4().hex[:RECEIPT_CHARACTERS]


def _no_queue(queue: str) -> QueueNotExist:
    return QueueNotExist(f"queue {queue} does not exist")
