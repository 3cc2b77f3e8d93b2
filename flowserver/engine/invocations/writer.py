"""Commits changes of asynchronous invocations, many in one: whatever comes before its transaction begins is part of it.

One change alone is as cheap as another's share of a set-based statement, so they are gathered until the writer's thread
comes to them.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import InvocationExists, ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.base.sharing import give
from flowserver.engine.commit.committer import Committer
from flowserver.store.cluster.nodes import LeaseLost
from flowserver.store.invocations.changes import InvocationRow, insert_invocations, save_invocations
from flowserver.store.queues.deliveries import NewDelivery, insert_deliveries
from flowserver.store.sql.errors import is_away

GATHERED_MAX = 200
"""Changes in one statement."""

Check = Callable[[Connection], object]
"""Looks in the transaction whether something may be submitted, and raises what stands against it."""


class Submission(msgspec.Struct, frozen=True):
    """A new invocation, and what must hold for it."""

    row: InvocationRow
    check: Check | None = None


class Change(msgspec.Struct, frozen=True):
    """An invocation as it was and as it is to be; an end may leave something to deliver."""

    before: InvocationRow
    after: InvocationRow
    delivery: NewDelivery | None = None


class InvocationWrites:
    """The way of all changes of invocations into the database."""

    def __init__(self, committer: Committer, limits: Limits) -> None:
        self._committer = committer
        self._limits = limits
        self._submissions = _Gathering(committer, insert_in)
        self._changes = _Gathering(committer, save_in)

    async def insert(self, submission: Submission) -> InvocationRow:
        """Add an invocation. Returns it, or the one that was submitted first under its key.

        Raises InvocationExists if its id is taken, ResourceThrottled if too many are on their way, and whatever its
        check raises.
        """
        if self._submissions.waiting >= self._limits.pending_messages_max:
            raise ResourceThrottled
        row: InvocationRow = await self._submissions.add(submission)
        return row

    async def save(self, change: Change) -> InvocationRow:
        """Make a change. Returns what it is now; raises InvocationChanged if it was something else before."""
        row: InvocationRow = await self._changes.add(change)
        return row


class _Gathering:
    """Items of one kind on their way; `apply` does many of them, and answers each or raises for all."""

    def __init__(self, committer: Committer, apply: Callable[[Connection, Sequence[Any]], list[Any]]) -> None:
        self._committer = committer
        self._apply = apply
        self._open = _Gathered(apply)
        self._open.close()
        self._under_way: set[asyncio.Task[None]] = set()
        self.waiting = 0

    def add(self, item: Any) -> Awaitable[Any]:
        future = asyncio.get_running_loop().create_future()
        if not self._open.add(item, future):
            self._open = _Gathered(self._apply)
            self._open.add(item, future)
            task = asyncio.create_task(self._commit(self._open), name="invocations")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        self.waiting += 1
        return future

    async def _commit(self, gathered: "_Gathered") -> None:
        try:
            answers = await self._committer.write(gathered.apply)
        except Exception as error:
            gathered.close()
            answers = await self._one_by_one(gathered.items, error)
        self.waiting -= len(gathered.items)
        for future, answer in zip(gathered.futures, answers, strict=True):
            give(future, answer)

    async def _one_by_one(self, items: Sequence[Any], error: Exception) -> list[Any]:
        """One that cannot be done does not keep the others from it; where the database is away, all are told so."""
        if len(items) == 1 or is_away(error) or isinstance(error, (LeaseLost, ResourceThrottled)):
            return [error] * len(items)
        return await asyncio.gather(*(self._alone(item) for item in items))

    async def _alone(self, item: Any) -> Any:
        try:
            [answer] = await self._committer.write(lambda connection: self._apply(connection, [item]))
        except Exception as error:
            return error
        return answer


class _Gathered:
    """Items that become one write. The event loop adds, the writer's thread applies; then no more can be added."""

    def __init__(self, apply: Callable[[Connection, Sequence[Any]], list[Any]]) -> None:
        self.items: list[Any] = []
        self.futures: list[asyncio.Future[Any]] = []
        self._apply = apply
        self._is_closed = False
        self._lock = threading.Lock()

    def add(self, item: Any, future: asyncio.Future[Any]) -> bool:
        with self._lock:
            if self._is_closed or len(self.items) >= GATHERED_MAX:
                return False
            self.items.append(item)
            self.futures.append(future)
            return True

    def close(self) -> None:
        with self._lock:
            self._is_closed = True

    def apply(self, connection: Connection) -> list[Any]:
        self.close()
        return self._apply(connection, self.items)


def insert_in(connection: Connection, submissions: Sequence[Submission]) -> list[InvocationRow | Exception]:
    """Add these as part of a transaction; for each what its key names then, or what stands against it."""
    answers: list[Any] = [_objection(connection, each) for each in submissions]
    rows = [each.row for each, objection in zip(submissions, answers, strict=True) if objection is None]
    inserted = iter(insert_invocations(connection, rows))
    for number, each in enumerate(submissions):
        if answers[number] is None:
            answers[number] = next(inserted) or _exists(each.row)
    return answers


def _objection(connection: Connection, submission: Submission) -> Exception | None:
    try:
        if submission.check is not None:
            submission.check(connection)
    except SQLAlchemyError:
        raise
    except Exception as error:
        return error
    return None


def _exists(row: InvocationRow) -> InvocationExists:
    return InvocationExists(f"function '{row.function}' has an invocation '{row.invocation_id}' already")


def save_in(connection: Connection, changes: Sequence[Change]) -> list[InvocationRow]:
    """Make these changes as part of a transaction; raises InvocationChanged if one of the invocations has changed."""
    save_invocations(connection, [(change.before, change.after) for change in changes])
    for change in changes:
        if change.delivery is not None:
            insert_deliveries(connection, [change.delivery], change.after.state.ended_at or 0)
    return [change.after for change in changes]
