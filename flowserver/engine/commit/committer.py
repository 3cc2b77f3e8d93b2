"""The single writer: items that arrive while a commit runs become the next batch.

Callers get their answers only after the commit. Requests of callers are bounded: a full queue refuses those that have
changed nothing yet with ResourceThrottled. The engine's own messages are always accepted; the work in progress limits
their number. `fair_queue` has the order of the items.

A batch that fails is taken apart, and each item is tried alone, so only an item at fault fails. An execution that the
database cannot read or save is parked. If the database is away, all items fail. After an error that no item explains
(a bug in the writer itself) nothing can be committed: all items fail with WriterCrashed, and the process ends.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError

from flowserver.base.errors import ResourceThrottled
from flowserver.base.malloc_trim import give_back_memory
from flowserver.base.nonces import Nonce
from flowserver.base.request_context import present_request
from flowserver.concurrency.background_throttle import BACKGROUND
from flowserver.concurrency.futures import resolve
from flowserver.concurrency.load_shedding import LoadShedding
from flowserver.engine.commit.batch import Batch, BatchResult
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import ENDING, Envelope, Item, Receipt, ReceiptKind, Write
from flowserver.engine.commit.crash_loop_guard import NotMarked, TooMuchAtOnce
from flowserver.engine.commit.fair_queue import FairQueue, Pending
from flowserver.engine.commit.further_tries import for_retry, is_at_fault, is_worth_retrying
from flowserver.engine.commit.spent_nonces import NonceRepeated, not_committed
from flowserver.store.cluster.nodes import LeaseLost, hold_lease, register_node
from flowserver.store.executions.crash_marks import clear_at_work_of
from flowserver.store.executions.history import has_event
from flowserver.store.executions.saving import park_execution
from flowserver.store.executions.saving_headers import was_rolled_back
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import is_away, reason_of

log = logging.getLogger(__name__)

CONFLICT_TRIES_MAX = 5
"""How often an item that conflicted with another node's commit is tried alone."""

GIVE_BACK_BYTES = 8_388_608
"""If a batch held more than this, the idle writer returns freed memory to the operating system, which the allocator
would keep."""

T = TypeVar("T")


class WriterCrashed(InterfaceError):
    """The writer ended with an error that no item caused; this process commits nothing any more."""

    def __init__(self) -> None:
        super().__init__("COMMIT", None, Exception("the writer has crashed, and this process commits nothing any more"))


class CommitListener(Protocol):
    """Acts on what was committed; called in the event loop, in commit order."""

    def committed(self, result: BatchResult) -> None:
        """The batch is durable: carry out its commands."""
        ...

    def lease_lost(self) -> None:
        """This node was declared dead and has a new id: other nodes own its calls now."""
        ...


class Committer:
    """Takes items from the event loop and commits them in batches, in its own thread."""

    def __init__(self, database: Database, context: BatchContext, listener: CommitListener) -> None:
        self._database = database
        self._context = context
        self._listener = listener
        self._queue = FairQueue()
        self._shedding = LoadShedding()
        self._exceeded_memory = False
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._loop_task: asyncio.Task[None] | None = None
        self._stopping = False
        self._stopped = False
        self.has_crashed = False
        """Whether the writer ended with an error; every submission now raises WriterCrashed."""
        self.on_crash: Callable[[], object] = lambda: None
        """Called once the writer has crashed: the process must end, so that a supervisor starts it again."""
        self._has_rejoined = False
        self._held_bytes = 0
        """The most that a batch has held since freed memory was returned."""
        self._tried: BatchResult | None = None
        """What the last batch would have returned; whether it was committed is unknown if its commit failed."""

    def start(self) -> None:
        """Start committing."""
        self._loop_task = asyncio.create_task(self._run(), name="committer")

    async def stop(self) -> None:
        """Commit what is queued, then stop."""
        self._stopping = True
        self._wake.set()
        if self._loop_task is not None:
            await self._loop_task
        self._stopped = True
        self._thread.shutdown()

    async def submit(self, envelope: Envelope, *, by_caller: bool = False) -> Receipt:
        """Commit a message and return its receipt.

        Raises ResourceThrottled at once if `by_caller` and the queue is full, or if the committer has stopped. Raises
        SQLAlchemyError, of which WriterCrashed is one, if the commit failed or its outcome is unknown; the change may
        be committed.
        """
        receipt: Receipt = await self._put(envelope, by_caller=by_caller)
        return receipt

    async def write(
        self, change: Callable[[Connection], T], *, by_caller: bool = False, nonce: Nonce | None = None
    ) -> T:
        """Run a change in the next batch's transaction and return its result once that is durable.

        With a `nonce`, only if that was not used before; it is used up with the change. Raises SignatureNonceUsed.
        """
        answer: T = await self._put(Write(change, nonce), by_caller=by_caller)
        return answer

    async def spend(self, nonce: Nonce) -> None:
        """Use up a nonce, durably; raises SignatureNonceUsed, and ResourceThrottled if the queue is full."""
        await self._put(Write(None, nonce), by_caller=True)

    async def write_once(self, change: Callable[[Connection, T | None], T], *, by_caller: bool = False) -> T:
        """As `write`, for a change whose effect must not count as another's if the batch is tried again.

        `change` also gets what its last try returned, which may be committed although the answer was lost; None if no
        try has returned yet.
        """
        earlier: T | None = None

        def attempt(connection: Connection) -> T:
            nonlocal earlier
            earlier = change(connection, earlier)
            return earlier

        return await self.write(attempt, by_caller=by_caller)

    def is_for_all(self, error: Exception) -> bool:
        """Whether no change could be made at present: the database is away, or this node has lost its lease, or stops.

        So a `Coalescer` does not try the changes of a failed group one by one.
        """
        return is_away(error) or isinstance(error, (LeaseLost, ResourceThrottled))

    @property
    def pending(self) -> int:
        """How many items wait for a later transaction."""
        return len(self._queue)

    def _put(self, item: Item, *, by_caller: bool) -> asyncio.Future[Any]:
        if self.has_crashed:
            raise WriterCrashed
        if self._stopped:
            raise ResourceThrottled
        future = asyncio.get_running_loop().create_future()
        if by_caller:
            waiting_max = self._context.limits.pending_messages_max
            if key := self._shedding.accept(self._queue.requested, waiting_max, is_change=True):
                future.add_done_callback(self._shedding.until_done(key))
            item = _of_request(item)
        self._queue.put((item, future), by_caller=by_caller)
        self._wake.set()
        return future

    async def _run(self) -> None:
        try:
            await self._commit_all()
        except BaseException as error:  # a bug, or this task was cancelled: no caller may wait for ever
            self.has_crashed = True
            for _, future in self._queue.unanswered():
                resolve(future, WriterCrashed())
            if not isinstance(error, Exception):
                raise
            log.critical("the writer has crashed; nothing is committed any more", exc_info=error)
            self.on_crash()

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while not (self._stopping and not len(self._queue)):
            await self._wake.wait()
            self._wake.clear()
            while taken := self._queue.take():
                await self._commit_first(taken)
            if self._held_bytes > GIVE_BACK_BYTES:
                self._held_bytes = 0
                await loop.run_in_executor(self._thread, give_back_memory)
        self._stopped = True  # set here at once: an item added after the loop's end would never be answered

    async def _commit_first(self, taken: Sequence[Pending]) -> None:
        """Commit these, or only the first if all are too much at once; the queue takes back the rest."""
        items = [item for item, _ in taken]
        self._exceeded_memory = False
        results = await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, items)
        if self._has_rejoined:
            self._has_rejoined = False
            self._listener.lease_lost()
        futures = iter(future for _, future in taken)
        for result in results:
            self._deliver(result, futures)
            self._held_bytes = max(self._held_bytes, result.held_bytes)
        self._queue.answered(
            sum(len(result.answers) for result in results),
            continued_steps=sum(result.continued_steps for result in results),
            exceeded_memory=self._exceeded_memory,
        )

    def _deliver(self, result: BatchResult, futures: Any) -> None:
        try:
            self._listener.committed(result)
        except Exception:  # it is committed, and recovery finds what was not done
            log.exception("acting on a commit failed")
        for answer in result.answers:
            resolve(next(futures), answer)

    def _commit(self, items: Sequence[Item]) -> list[BatchResult]:
        """Results in order. If the items cannot be committed together, each is tried alone.

        If the histories show that the first try was committed, only its answer was lost: its effects come first. If
        they cannot be read, because the database stays away, what that commit ordered waits for recovery: its timers
        for the end of the outage, its calls for two sweeps (`SWEEP_SECONDS`) after it.

        If they are too much at once, only the first are committed and have results.
        """
        try:
            with BACKGROUND.paused():
                return [self._transact(items)]
        except TooMuchAtOnce:  # nothing was done, and no item failed
            self._exceeded_memory = True
            return self._commit(items[: len(items) // 2])
        except Exception as error:
            again = for_retry(items, tried := None if was_rolled_back(error) else self._tried)
            effects = [tried.effects] if tried is not None and self._is_durable(tried) else []
            if len(items) == 1:
                results = [self._commit_alone(again[0], error)]
            else:
                log.warning("a batch of %d failed and is taken apart: %r", len(items), error)
                results = self._commit_apart(again)
            return results if self._has_rejoined else [*effects, *results]

    def _is_durable(self, tried: BatchResult) -> bool:
        """Whether the histories have what the batch recorded last in every execution; False if they cannot be read.

        All are compared, before anything is tried again: another node, or another try, may well record the same event
        in one execution in the same millisecond, and what was ordered in the others would then be made without a row.
        """
        last = [(each.stored.execution.execution_id, each.events[-1]) for each in tried.changes if each.events]
        try:
            with self._database.read() as connection:
                return bool(last) and all(has_event(connection, *one) for one in last)
        except Exception:
            return False

    def _commit_apart(self, items: Sequence[Item]) -> list[BatchResult]:
        """Each item alone. Once the database proves to be away, the rest fail at once."""
        results: list[BatchResult] = []
        for item in items:
            results.append(self._commit_alone(item, None))
            answer = results[-1].answers[0]
            if isinstance(answer, Exception) and is_away(answer) and not self._database_works():
                return results + [BatchResult(answers=[answer]) for _ in items[len(results) :]]
        return results

    def _database_works(self) -> bool:
        """Whether the database works, so that only the item that has just failed is at fault."""
        try:
            with self._database.write() as connection:
                hold_lease(connection, self._context.lease.node_id)
        except LeaseLost:
            return True
        except Exception:
            return False
        return True

    def _commit_alone(self, item: Item, error: Exception | None) -> BatchResult:
        for tries in range(CONFLICT_TRIES_MAX):
            if error is not None and not is_worth_retrying(error, tries):
                break
            try:
                return self._transact([item])
            except Exception as again:
                error = again
        if error is None or not isinstance(item, Envelope) or not is_at_fault(error):
            return BatchResult(answers=[error])
        return self._give_up(item, error)

    def _give_up(self, envelope: Envelope, error: Exception) -> BatchResult:
        """The database works, but this execution cannot be read or saved: another try would fail as well."""
        log.error("execution %(execution_id)s is parked", {"execution_id": envelope.execution_id}, exc_info=error)
        if envelope.new is not None:
            return BatchResult(answers=[Receipt(ReceiptKind.PARKED)])
        if isinstance(envelope.message, ENDING):
            try:
                return self._transact([envelope], headers_only=True)
            except Exception as again:
                error = again
        return self._park(envelope, error)

    def _park(self, envelope: Envelope, error: Exception) -> BatchResult:
        """Change only the header. If that can be committed, the database works."""
        reason = f"{type(error).__name__}: {reason_of(error)}"
        try:
            with self._database.write() as connection:
                hold_lease(connection, self._context.lease.node_id)
                park_execution(connection, envelope.execution_id, reason)
        except Exception as failed:  # the writer must continue
            return BatchResult(answers=[failed])
        return BatchResult(answers=[Receipt(ReceiptKind.PARKED)], parked=[envelope.execution_id])

    def _transact(self, items: Sequence[Item], *, headers_only: bool = False) -> BatchResult:
        try:
            return self._attempt_marked(items, headers_only)
        except LeaseLost as lost:
            self._rejoin()
            log.warning("%s; it continues under the new id %s", lost, self._context.lease.node_id)
            return self._attempt_marked(items, headers_only)

    def _attempt_marked(self, items: Sequence[Item], headers_only: bool) -> BatchResult:
        """Try; if large executions are not marked yet, mark them and try again, and so on after a repeated nonce."""
        nonces_singly = False
        while True:
            try:
                return self._attempt(items, headers_only, nonces_singly)
            except NotMarked as unmarked:
                self._mark(unmarked.execution_ids)
            except NonceRepeated:
                not_committed(items)
                nonces_singly = True

    def _mark(self, execution_ids: Collection[str]) -> None:
        guard, node_id = self._context.crash_loop_guard, self._context.lease.node_id
        with self._database.write() as connection:
            hold_lease(connection, node_id)
            ends = guard.mark(connection, node_id, execution_ids)
        guard.marked(ends)

    def _attempt(self, items: Sequence[Item], headers_only: bool, nonces_singly: bool) -> BatchResult:
        began = time.perf_counter()
        self._tried = None
        with self._database.write() as connection:
            batch = Batch(
                connection,
                self._context,
                headers_only=headers_only,
                is_shared=self._queue.is_shared,
                nonces_singly=nonces_singly,
            )
            result = self._tried = batch.run(items)
        batch.settle()
        result.seconds = time.perf_counter() - began
        return result

    def _rejoin(self) -> None:
        """Take a new lease. Replies under the old one will be stale; requests of callers remain valid."""
        context = self._context
        lost = context.lease.node_id
        node_id = context.lease.renew()
        context.cache.clear()  # only frees memory: versions keep a stale execution from being used
        self._has_rejoined = True
        with self._database.write() as connection:
            clear_at_work_of(connection, lost)
            register_node(connection, node_id, self._database.session_name, context.clock.now_ms())
        context.crash_loop_guard.forget()


async def all_of(submissions: Iterable[Awaitable[T]]) -> list[T | None]:
    """The results in order, None for those that failed. One failure does not affect the others."""
    results = await asyncio.gather(*submissions, return_exceptions=True)
    for error in results:
        if isinstance(error, Exception):
            log.warning("a submission failed and is left to recovery: %s", reason_of(error))
    return [None if isinstance(result, BaseException) else result for result in results]


def _of_request(item: Item) -> Item:
    """The item with the access key of the present request, and with its nonce if this is its first change."""
    request = present_request()
    if request is None or not request.key_id:
        return item
    nonce, request.nonce = request.nonce or item.nonce, None
    return replace(item, nonce=nonce, caller=request.key_id)
