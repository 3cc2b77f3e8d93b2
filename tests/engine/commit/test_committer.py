"""Group commit: items that arrive during a commit form the next one, and answers follow the durable commit."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, func, insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from flowserver.base.errors import FlowServerError, ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit import committer as module
from flowserver.engine.commit.batch import BatchResult
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import Envelope, ReceiptKind
from flowserver.engine.commit.committer import Committer, WriterCrashed
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.engine.commit.fair_queue import FairQueue
from flowserver.machine.messages import Continue, Start, Stop
from flowserver.machine.state import Status
from flowserver.store.cluster.nodes import register_node
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.history import save_events
from flowserver.store.executions.history_parts import KnownParts
from flowserver.store.executions.lookups import count_running, find_names
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.schema.tables import execution_documents, executions, secrets
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import is_away
from tests.engine.held_threads import Gate
from tests.engine.nodes import PATIENCE_SECONDS, TOKENS, FragileDatabase, definition
from tests.store.rows import event, flow_row, insert_flow
from tests.support.clock import ManualClock
from tests.support.postgres import cut_sessions

WAIT = definition("- {type: wait, name: w, duration: 60}")
LIMITS = Limits(pending_messages_max=5)


class Listener:
    """Records every commit it is called for, and the rows in the database at that moment."""

    def __init__(self, database: Database) -> None:
        self.results: list[BatchResult] = []
        self.kept: list[int] = []
        self.executions: list[int] = []
        self.fails = False
        self._database = database

    def committed(self, result: BatchResult) -> None:
        self.results.append(result)
        self.kept.append(kept(self._database))
        self.executions.append(self._database.run_read(count_running))
        if self.fails:
            raise ZeroDivisionError

    @property
    def sizes(self) -> list[int]:
        return [len(result.answers) for result in self.results]


@pytest.fixture
def fragile(open_database: Callable[[], FragileDatabase]) -> FragileDatabase:
    return open_database()


@pytest.fixture
def listener(fragile: FragileDatabase) -> Listener:
    return Listener(fragile)


@pytest.fixture
async def committer(fragile: FragileDatabase, listener: Listener, clock: ManualClock) -> AsyncIterator[Committer]:
    async with committing(fragile, listener, clock) as started:
        yield started


@asynccontextmanager
async def committing(
    database: Database, listener: Listener, clock: ManualClock, **more: Any
) -> AsyncIterator[Committer]:
    with database.write() as connection:
        insert_flow(connection, flow_row("f", definition=WAIT))
        register_node(connection, "node-1", "session", 0)
    cache = ExecutionCache(Limits().cached_executions_bytes_max)
    batch_context = BatchContext(clock, LIMITS, "null", TOKENS, Lease("node-1"), DefinitionCache(), cache, **more)
    started = Committer(database, batch_context, listener)
    started.start()
    yield started
    await started.stop()


def keep(name: str) -> Callable[[Connection], str]:
    def change(connection: Connection) -> str:
        connection.execute(insert(secrets).values(name=name, value="v"))
        return name

    return change


def kept(database: Database) -> int:
    return database.run_read(lambda c: c.execute(select(func.count(secrets.c.name))).scalar_one())


def start(name: str, execution_id: str = "") -> Envelope:
    execution_id = execution_id or f"id-{name}"
    return Envelope(execution_id, Start(), NewExecution(execution_id, "f", name, "", {}))


def sure(envelope: Envelope) -> Envelope:
    """A start whose name needs no check."""
    assert envelope.new is not None
    return replace(envelope, new=replace(envelope.new, name_is_unique=True))


async def busy(committer: Committer) -> tuple[Gate, asyncio.Task[str]]:
    """Occupy the writer with a commit that ends when the gate opens."""
    gate = Gate()
    task = asyncio.create_task(committer.write(gate))
    await gate.reached.wait()
    return gate, task


async def queue(*items: Any) -> list[asyncio.Task[Any]]:
    """Submit the items, in order."""
    tasks = [asyncio.ensure_future(item) for item in items]
    await asyncio.sleep(0)
    return tasks


async def test_items_that_arrive_during_a_commit_are_committed_together(
    committer: Committer, listener: Listener
) -> None:
    gate, first = await busy(committer)
    tasks = await queue(*(committer.write(keep(name)) for name in "abc"), committer.submit(start("e")))
    gate.open()
    assert await first == "through"
    assert [await task for task in tasks[:3]] == ["a", "b", "c"]
    assert (await tasks[3]).kind is ReceiptKind.APPLIED
    assert listener.sizes == [1, 4]


async def test_a_batch_is_bounded(committer: Committer, listener: Listener) -> None:
    gate, _ = await busy(committer)
    tasks = await queue(*(committer.write(keep(f"{number}")) for number in range(450)))
    gate.open()
    await asyncio.gather(*tasks)
    assert listener.sizes == [1, 200, 200, 50]


async def test_answers_come_after_the_commit(committer: Committer, listener: Listener, fragile: Database) -> None:
    gate, first = await busy(committer)
    [write, submit] = await queue(committer.write(keep("a")), committer.submit(start("e")))
    assert not first.done()
    assert kept(fragile) == 0
    gate.open()
    await asyncio.gather(first, write, submit)
    assert listener.kept == [0, 1]
    assert listener.executions == [0, 1]


async def test_a_write_fails_alone(committer: Committer, listener: Listener, fragile: Database) -> None:
    def refuse(connection: Connection) -> None:
        keep("half")(connection)
        raise ResourceThrottled("no")

    gate, _ = await busy(committer)
    tasks = await queue(
        committer.write(keep("a")), committer.write(refuse), committer.write(keep("a")), committer.write(keep("b"))
    )
    gate.open()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [results[0], results[3]] == ["a", "b"]
    assert isinstance(results[1], FlowServerError)
    assert isinstance(results[2], IntegrityError)
    assert listener.sizes == [1, 4]
    assert kept(fragile) == 2


async def test_a_full_queue_refuses_callers(committer: Committer) -> None:
    gate, _ = await busy(committer)
    tasks = await queue(*(committer.write(keep(f"{number}"), by_caller=True) for number in range(5)))
    with pytest.raises(ResourceThrottled):
        await committer.submit(start("e"), by_caller=True)
    with pytest.raises(ResourceThrottled):
        await committer.write(keep("x"), by_caller=True)
    tasks += await queue(committer.submit(start("e")))  # the engine's own messages are always accepted
    gate.open()
    assert (await asyncio.gather(*tasks))[5].kind is ReceiptKind.APPLIED
    assert await committer.write(keep("x"), by_caller=True) == "x"


async def test_items_that_a_batch_leaves_are_answered_by_later_ones(
    database: Database, listener: Listener, clock: ManualClock
) -> None:
    async with committing(database, listener, clock, made_bytes_max=1) as committer:
        gate, first = await busy(committer)
        tasks = await queue(*(committer.submit(start(name)) for name in "abc"), committer.write(keep("d")))
        gate.open()
        receipts = await asyncio.gather(first, *tasks)
    assert [receipt.kind for receipt in receipts[1:4]] == [ReceiptKind.APPLIED] * 3
    assert receipts[4] == "d"
    assert listener.sizes[1:] == [1, 1, 1, 1]


async def test_a_stop_goes_first_and_does_not_change_how_the_batch_is_divided(
    database: Database, listener: Listener, clock: ManualClock
) -> None:
    async with committing(database, listener, clock, made_bytes_max=1) as committer:
        await committer.submit(start("before"))
        gate, _ = await busy(committer)
        tasks = await queue(
            *(committer.submit(start(name)) for name in "ab"), committer.submit(Envelope("id-before", Stop()))
        )
        done: list[asyncio.Task[Any]] = []
        for task in tasks:
            task.add_done_callback(done.append)
        gate.open()
        await asyncio.gather(*tasks)
    assert listener.sizes == [1, 1, 2, 1]
    assert done == [tasks[2], *tasks[:2]]


async def test_stopping_commits_queued_items(committer: Committer, fragile: Database) -> None:
    gate, first = await busy(committer)
    tasks = await queue(*(committer.write(keep(f"{number}")) for number in range(300)))
    stopping = asyncio.create_task(committer.stop())
    gate.open()
    await stopping
    assert all(task.done() for task in (first, *tasks))
    assert kept(fragile) == 300
    with pytest.raises(ResourceThrottled):
        await committer.submit(start("e"))


@pytest.mark.parametrize("place", ["take", "answered"])
async def test_a_writer_that_crashes_leaves_no_caller_waiting(
    committer: Committer,
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
) -> None:
    gate, first = await busy(committer)
    tasks = await queue(
        committer.write(keep("a"), by_caller=True), committer.write(keep("b")), committer.submit(start("e"))
    )

    def crash(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("outside all items")

    crashes: list[bool] = []
    committer.on_crash = lambda: crashes.append(committer.has_crashed)
    monkeypatch.setattr(FairQueue, place, crash)
    gate.open()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [(type(result), is_away(result)) for result in results] == [(WriterCrashed, True)] * 3
    assert await first == "through"  # it was durable before
    assert crashes == [True]
    assert "ZeroDivisionError: outside all items" in caplog.text
    with pytest.raises(WriterCrashed):
        await committer.write(keep("c"))


async def test_a_writer_that_crashes_in_a_commit_leaves_no_caller_waiting(
    committer: Committer, listener: Listener, monkeypatch: pytest.MonkeyPatch, fragile: Database
) -> None:
    monkeypatch.setattr(Committer, "_commit", lambda *_: 1 // 0)
    tasks = await queue(committer.write(keep("a")), committer.write(keep("b"), by_caller=True))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [WriterCrashed] * 2
    assert (committer.has_crashed, kept(fragile)) == (True, 0)


async def test_a_change_that_raises_an_exception_no_future_accepts_fails_alone(committer: Committer) -> None:
    def odd(_: Connection) -> None:
        raise StopIteration

    results = await asyncio.gather(committer.write(odd), committer.write(keep("a")), return_exceptions=True)
    assert [type(result) for result in results] == [RuntimeError, str]
    assert await committer.write(keep("b")) == "b"


async def test_a_cancelled_caller_does_not_disturb_the_commit(committer: Committer, fragile: Database) -> None:
    gate, _ = await busy(committer)
    [gone, stays] = await queue(committer.write(keep("a")), committer.write(keep("b")))
    gone.cancel()
    gate.open()
    assert await stays == "b"
    assert kept(fragile) == 2


async def test_a_listener_that_fails_does_not_undo_the_commit(committer: Committer, listener: Listener) -> None:
    listener.fails = True
    assert await committer.write(keep("a")) == "a"
    assert await committer.write(keep("b")) == "b"
    assert listener.kept == [1, 2]


async def test_a_batch_that_cannot_be_committed_is_divided(
    committer: Committer, listener: Listener, fragile: Database
) -> None:
    """A row that only the insert refuses: a start whose name is not checked, although it exists."""
    with fragile.write() as connection:
        insert_flow(connection, flow_row("g", definition=WAIT))
    taken = NewExecution("id-taken", "g", "taken", "", {})
    assert (await committer.submit(Envelope("id-taken", Start(), taken))).kind is ReceiptKind.APPLIED
    gate, _ = await busy(committer)
    tasks = await queue(
        committer.submit(start("a")),
        committer.submit(sure(start("b", "id-taken"))),
        committer.write(keep("c")),
        committer.submit(start("d")),
    )
    gate.open()
    kinds = [getattr(await task, "kind", None) for task in tasks]
    assert kinds == [ReceiptKind.APPLIED, ReceiptKind.EXISTS, None, ReceiptKind.APPLIED]
    assert listener.sizes == [1, 1, 1, 1, 1, 1]
    with fragile.read() as connection:
        names = find_names(connection, [("flow-f", name) for name in "abd"])
        assert {name for _, name in names} == {"a", "d"}
        assert connection.execute(select(func.count()).select_from(execution_documents)).scalar_one() == 3


async def test_a_commit_that_succeeded_but_reported_failure_is_recognized(committer: Committer, fragile: Any) -> None:
    """The answer to COMMIT is lost. The retry finds the rows, parks nothing, and gives the first try's receipts."""
    fragile.lose_answer_of(select(executions))
    tasks = await queue(committer.submit(sure(start("a"))), committer.submit(start("b")))
    receipts = [await task for task in tasks]
    assert [receipt.kind for receipt in receipts] == [ReceiptKind.APPLIED, ReceiptKind.APPLIED]
    assert [receipt.started and receipt.started.name for receipt in receipts] == ["a", "b"]
    with fragile.read() as connection:
        parked = connection.execute(select(executions.c.parked_error)).scalars()
        assert list(parked) == [None, None]


async def test_an_execution_that_cannot_be_saved_is_parked(committer: Committer, fragile: Database) -> None:
    """A retry does not help: the row of its next event already exists."""
    assert (await committer.submit(start("e"))).kind is ReceiptKind.APPLIED
    with fragile.write() as connection:
        following = connection.execute(select(executions.c.next_event_id)).scalar_one()
        save_events(connection, [("id-e", [event(following)], KnownParts())])
    gate, _ = await busy(committer)
    tasks = await queue(committer.submit(Envelope("id-e", Stop())), committer.submit(start("other")))
    gate.open()
    assert [(await task).kind for task in tasks] == [ReceiptKind.PARKED, ReceiptKind.APPLIED]
    with fragile.read() as connection:
        row = connection.execute(select(executions).where(executions.c.execution_id == "id-e")).one()
    assert (row.status, row.version) == (Status.RUNNING, 2)
    assert "IntegrityError" in row.parked_error


async def test_a_conflict_is_retried(committer: Committer, fragile: FragileDatabase) -> None:
    """Another writer commits a turn between the load and the save."""
    await committer.submit(start("e"))

    def meddle(connection: Connection) -> None:
        connection.execute(text("UPDATE executions SET version = version + 1"))

    gate, _ = await busy(committer)
    tasks = await queue(committer.submit(Envelope("id-e", Stop())), committer.write(meddle))
    gate.open()
    assert (await tasks[0]).kind is ReceiptKind.APPLIED
    with fragile.read() as connection:
        assert connection.execute(select(executions.c.status)).scalar_one() == "Stopped"


async def test_items_that_fail_alone_do_not_prevent_the_others(committer: Committer, fragile: Database) -> None:
    """For any number of failures: the database answers in between, so it is not down."""

    def fail(_: Connection) -> None:
        raise OperationalError("SELECT", None, Exception("canceled"))

    gate, _ = await busy(committer)
    tasks = await queue(*(committer.write(fail) for _ in range(3)), *(committer.write(keep(name)) for name in "abc"))
    gate.open()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results[:3]] == [OperationalError] * 3
    assert results[3:] == ["a", "b", "c"]
    assert kept(fragile) == 3


@pytest.mark.parametrize("items", [1, 3])
async def test_a_failing_database_is_reported_and_nothing_is_kept(
    committer: Committer, listener: Listener, fragile: FragileDatabase, items: int
) -> None:
    fragile.broken = True
    gate = asyncio.gather(*(committer.write(keep(name)) for name in "abc"[:items]), return_exceptions=True)
    assert [type(result) for result in await gate] == [OperationalError] * items
    with pytest.raises(OperationalError):
        await committer.submit(start("e"))
    fragile.broken = False
    assert kept(fragile) == 0
    assert (await committer.submit(start("e"))).kind is ReceiptKind.APPLIED
    assert (await committer.submit(Envelope("id-e", Continue()))).kind is ReceiptKind.APPLIED


async def test_a_single_write_is_retried_when_its_session_was_cut(
    postgres_database: Database, clock: ManualClock
) -> None:
    async with committing(postgres_database, Listener(postgres_database), clock) as committer:
        assert await committer.write(keep("a")) == "a"
        assert cut_sessions(postgres_database) > 0
        assert await committer.write(keep("b")) == "b"
        assert cut_sessions(postgres_database) > 0
        assert (await committer.submit(start("e"))).kind is ReceiptKind.APPLIED
        assert kept(postgres_database) == 2


async def test_a_full_disk_leaves_no_half_batch(sqlite_database: Database, clock: ManualClock) -> None:
    """SQLite may roll back the whole transaction then, so earlier items of the batch must not count as written."""

    def too_much(connection: Connection) -> None:
        connection.execute(insert(secrets).values(name="big", value="x" * 10_000_000))

    listener = Listener(sqlite_database)
    async with committing(sqlite_database, listener, clock) as committer:
        _limit_pages(sqlite_database, 0)
        gate, _ = await busy(committer)
        tasks = await queue(
            committer.write(keep("before")),
            committer.submit(start("e")),
            committer.write(too_much),
            committer.write(keep("after")),
        )
        gate.open()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [results[0], results[1].kind, results[3]] == ["before", ReceiptKind.APPLIED, "after"]
        assert isinstance(results[2], OperationalError)
        assert listener.sizes == [1, 1, 1, 1, 1]
        assert (kept(sqlite_database), sqlite_database.run_read(count_running)) == (2, 1)
        _limit_pages(sqlite_database, 1_000_000)
        await committer.write(too_much)
        assert kept(sqlite_database) == 3


def _limit_pages(database: Database, pages: int) -> None:
    """Let the file grow to this many pages; 0 allows slightly more than its present size."""
    with database.write() as connection:
        pages = pages or connection.execute(text("PRAGMA page_count")).scalar_one() + 20
        connection.execute(text(f"PRAGMA max_page_count = {pages}"))


async def test_items_that_arrive_while_memory_is_released_at_the_end_are_committed(
    database: Database, listener: Listener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def give_back() -> None:
        reached.set()
        go_on.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(module, "give_back_memory", give_back)
    monkeypatch.setattr(module, "GIVE_BACK_BYTES", -1)
    async with committing(database, listener, clock) as committer:
        await committer.write(lambda _: None)
        await asyncio.to_thread(reached.wait, PATIENCE_SECONDS)
        stopping = asyncio.create_task(committer.stop())
        await asyncio.sleep(0)
        late = asyncio.ensure_future(committer.write(lambda _: "late"))
        await asyncio.sleep(0)
        go_on.set()
        assert await asyncio.wait_for(late, PATIENCE_SECONDS) == "late"
        await stopping
