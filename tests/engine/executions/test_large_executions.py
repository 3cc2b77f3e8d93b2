"""Large executions: ended without being loaded, limited in memory, and parked if they kill the process."""

import asyncio
import resource
from collections.abc import Sequence
from ctypes import CDLL, c_size_t, c_void_p, memset
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update
from sqlalchemy.exc import OperationalError

from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.base.malloc_trim import give_back_memory
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit import committer, scope_loading
from flowserver.engine.commit import crash_loop_guard as marking
from flowserver.engine.commit.batch import BatchResult
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import Envelope, Item, ReceiptKind, Write
from flowserver.engine.commit.committer import Committer, all_of
from flowserver.engine.commit.crash_loop_guard import UNCLEAN_ENDS_MAX
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.engine.commit.fair_queue import FairQueue
from flowserver.machine.commands import CancelInvocation
from flowserver.machine.messages import DeadlineReached, Message, Start, Stop, Success, TaskReplied, TimerFired
from flowserver.store.cluster.nodes import register_node, remove_node
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.crash_marks import mark_at_work
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.flows import insert_flow
from flowserver.store.integrity.violations import unpark_execution
from flowserver.store.schema.tables import at_work, executions, scopes
from flowserver.store.sql.database import Database
from tests.engine.nodes import TOKENS, definition
from tests.store.rows import flow_row
from tests.support.clock import ManualClock

FLOWS = {
    "wait": "- {type: wait, name: w, duration: 60}",
    "calls": """
        - type: foreach
          name: each
          iterationMapping: {collection: $.items, item: item}
          steps: [{type: task, name: call, resourceArn: 'acs:fc:::services/s/functions/f'}]
    """,
}
GIVEN = {"items": [1, 2, 3], "text": "x" * 1_000}
WOKEN = TimerFired(1, 1)


class ProcessEnds(BaseException):
    """The process is killed while it reads an execution."""


class Process:
    """A server's writer, run step by step; a new one for each start of the process."""

    def __init__(self, database: Database, clock: ManualClock, number: int = 1, limits: Limits | None = None) -> None:
        self.database = database
        self.node_id = f"node-{number}"
        limits = limits or Limits()
        warm = ExecutionCache(0)  # so that each turn reads its execution
        workshop = BatchContext(clock, limits, "null", TOKENS, Lease(self.node_id), DefinitionCache(), warm)
        listener: Any = None
        self.writer = Committer(database, workshop, listener)
        with database.write() as connection:
            register_node(connection, self.node_id, "session", 0)

    def commit(self, *items: Item) -> list[BatchResult]:
        """Commits as the committer's loop does: what exceeded memory is tried again without the finished part."""
        results: list[BatchResult] = []
        while (done := sum(len(result.answers) for result in results)) < len(items):
            results += self.writer._commit(items[done:])
        return results

    def kinds(self, *items: Item) -> list[ReceiptKind]:
        return [answer.kind for result in self.commit(*items) for answer in result.answers]

    def is_gone(self) -> None:
        with self.database.write() as connection:
            remove_node(connection, self.node_id)


@pytest.fixture
def process(database: Database, clock: ManualClock) -> Process:
    with database.write() as connection:
        for name, steps in FLOWS.items():
            insert_flow(connection, flow_row(name, definition=definition(steps)))
    return Process(database, clock)


def start(flow: str, name: str = "e") -> Envelope:
    return Envelope(name, Start(), NewExecution(name, flow, name, dump_json(GIVEN), GIVEN))


def tell(message: Message, name: str = "e") -> Envelope:
    return Envelope(name, message)


def parked(database: Database, name: str = "e") -> str | None:
    query = select(executions.c.parked_error).where(executions.c.execution_id == name)
    return database.run_read(lambda connection: connection.execute(query).scalar_one())


def marks(database: Database) -> list[tuple[str, str, int]]:
    query = select(at_work).order_by(at_work.c.execution_id, at_work.c.node_id)
    return [tuple(row) for row in database.run_read(lambda connection: connection.execute(query).all())]


# Ending without loading


def spoil(database: Database) -> None:
    """Make every document of a step list unreadable, so that reading one parks its execution."""
    with database.write() as connection:
        connection.execute(update(scopes).values(local="{", step_input="{"))


def test_a_stop_reads_no_documents_and_drops_the_calls(process: Process) -> None:
    process.commit(start("calls"))
    spoil(process.database)
    (result,) = process.commit(tell(Stop()))
    assert ([each.kind for each in result.answers], result.parked) == ([ReceiptKind.APPLIED], [])
    cancelled = [each for each in result.changes[0].commands if isinstance(each, CancelInvocation)]
    assert [(each.scope_id, each.wait_id) for each in cancelled] == [(2, 2), (3, 3), (4, 4)]
    left = process.database.run_read(lambda connection: connection.execute(select(scopes)).all())
    assert left == []


async def test_a_stop_goes_before_the_rest_of_its_batch(process: Process) -> None:
    process.commit(start("calls"))
    spoil(process.database)
    reply, queue = tell(TaskReplied(2, 2, Success({}))), FairQueue()
    for item in (reply, tell(Stop()), reply):
        queue.put((item, asyncio.get_running_loop().create_future()), by_caller=False)
    batch = [item for item, _ in queue.take()]
    assert process.kinds(*batch) == [ReceiptKind.APPLIED, ReceiptKind.ENDED, ReceiptKind.ENDED]
    assert parked(process.database) is None


def test_a_deadline_reads_no_documents_either(process: Process, clock: ManualClock) -> None:
    process.commit(start("calls"))
    spoil(process.database)
    assert process.kinds(tell(DeadlineReached())) == [ReceiptKind.STALE]
    clock.advance(seconds=Limits().execution_seconds_max)
    assert process.kinds(tell(DeadlineReached())) == [ReceiptKind.APPLIED]
    assert parked(process.database) is None


def test_parked_and_ended_executions_are_not_read(process: Process) -> None:
    process.commit(start("calls", "parked"), start("calls", "over"))
    process.commit(tell(Stop(), "over"))
    with process.database.write() as connection:
        connection.execute(update(executions).where(executions.c.execution_id == "parked").values(parked_error="why"))
    spoil(process.database)
    reply = TaskReplied(2, 2, Success({}))
    assert process.kinds(tell(reply, "parked"), tell(reply, "over")) == [ReceiptKind.PARKED, ReceiptKind.ENDED]
    assert parked(process.database, "parked") == "why"


# The memory of one batch


def test_a_batch_that_would_read_too_much_is_divided(process: Process, clock: ManualClock) -> None:
    names = [f"e{number}" for number in range(6)]
    process.commit(*(start("wait", name) for name in names))
    clock.advance(seconds=60)
    narrow = Process(process.database, clock, 2, Limits(execution_data_bytes_max=2_500))
    results = narrow.commit(*(tell(WOKEN, name) for name in names))  # of 1,029 bytes each
    assert len(results) >= 3
    assert all(len(result.answers) <= 2 for result in results)
    assert {answer.kind for result in results for answer in result.answers} == {ReceiptKind.APPLIED}


def test_a_batch_whose_executions_grow_too_large_is_divided(process: Process, clock: ManualClock) -> None:
    narrow = Process(process.database, clock, 2, Limits(execution_data_bytes_max=20_000))
    results = narrow.commit(*(start("wait", f"e{number}") for number in range(16)))  # each adds some 4,000 bytes
    assert 4 <= len(results) <= 6
    assert {answer.kind for result in results for answer in result.answers} == {ReceiptKind.APPLIED}


async def test_memory_is_released_after_a_large_batch_whose_parts_are_answered_separately(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str | int] = []
    monkeypatch.setattr(committer, "GIVE_BACK_BYTES", 10_000)
    monkeypatch.setattr(committer, "give_back_memory", lambda: done.append("given back"))
    narrow = Process(process.database, ManualClock(), 2, Limits(execution_data_bytes_max=20_000))
    monkeypatch.setattr(narrow.writer, "_listener", Listener(done))
    narrow.writer.start()
    receipts = await all_of(narrow.writer.submit(start("wait", f"e{number}")) for number in range(16))
    assert {receipt.kind for receipt in receipts if receipt is not None} == {ReceiptKind.APPLIED}
    await narrow.writer.submit(start("wait", "small"))
    await narrow.writer.stop()
    assert done == [4, 4, 4, 4, "given back", 1]


@dataclass
class Listener:
    """Records the number of items of each transaction."""

    seen: list[str | int]

    def committed(self, result: BatchResult) -> None:
        self.seen.append(len(result.answers))

    def lease_lost(self) -> None:
        raise AssertionError


def test_free_memory_goes_back_to_the_system() -> None:
    """Pieces too small for a mapping of their own stay in glibc's heap below the last one, which is not free."""
    libc = CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        return  # `give_back_memory` promises nothing there
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = c_void_p, [c_size_t], [c_void_p]
    size, count = 64 << 10, 1_000
    pieces = [libc.malloc(size) for _ in range(count)]
    for piece in pieces:
        memset(piece, 1, size)
    for piece in pieces[:-1]:
        libc.free(piece)
    before = _resident_bytes()
    give_back_memory()
    assert before - _resident_bytes() > size * count // 2
    libc.free(pieces[-1])


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


# Unclean ends


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every execution with data counts as large."""
    monkeypatch.setattr(marking, "LARGE_BYTES", 100)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The executions of each read."""
    seen: list[list[str]] = []
    load_scopes = scope_loading.load_scopes

    def load(connection: Connection, batch: Sequence[StoredExecution], broken: dict[str, str]) -> None:
        names = [stored.execution.execution_id for stored in batch]
        if names:
            seen.append(names)
        if "bad" in names:
            raise ProcessEnds
        load_scopes(connection, batch, broken)

    monkeypatch.setattr(scope_loading, "load_scopes", load)
    return seen


def dies(process: Process, *items: Item) -> bool:
    """Whether the process ends over these items."""
    try:
        process.commit(*items)
    except ProcessEnds:
        process.is_gone()
        return True
    return False


def restarts(process: Process, clock: ManualClock, *items: Item) -> Process:
    """Start the process until one start survives the items; returns that one."""
    number = 1
    while dies(process, *items):
        number += 1
        process = Process(process.database, clock, number)
    return process


def test_an_execution_that_kills_the_process_repeatedly_is_parked(
    process: Process, clock: ManualClock, large: None, reads: list[list[str]]
) -> None:
    process.commit(start("wait", "bad"))
    clock.advance(seconds=60)
    survivor = restarts(process, clock, tell(WOKEN, "bad"))
    assert survivor.node_id == f"node-{UNCLEAN_ENDS_MAX + 1}"
    assert parked(process.database, "bad") == (
        "the server ended uncleanly 3 times in a row while it worked on this execution, which holds 1029 bytes of data"
    )
    assert marks(process.database) == []
    assert survivor.kinds(tell(Stop(), "bad"), tell(WOKEN, "bad")) == [ReceiptKind.APPLIED, ReceiptKind.ENDED]


def test_other_executions_are_not_suspected_with_it(
    process: Process, clock: ManualClock, large: None, reads: list[list[str]]
) -> None:
    names = ["a", "bad", "b"]
    process.commit(*(start("wait", name) for name in names))
    clock.advance(seconds=60)
    messages = [tell(WOKEN, name) for name in names]
    survivor = restarts(process, clock, *messages)
    assert reads[0] == sorted(names)
    assert all(len(together) == 1 for together in reads[1:])
    assert survivor.kinds(*messages) == [ReceiptKind.ENDED, ReceiptKind.PARKED, ReceiptKind.ENDED]


def test_an_unparked_execution_is_tried_as_often_as_at_first(
    process: Process, clock: ManualClock, large: None, reads: list[list[str]]
) -> None:
    process.commit(start("wait", "bad"))
    clock.advance(seconds=60)
    survivor = restarts(process, clock, tell(WOKEN, "bad"))
    with process.database.write() as connection:
        assert unpark_execution(connection, "bad")
    assert dies(survivor, tell(WOKEN, "bad"))
    assert marks(process.database) == [("bad", survivor.node_id, 0)]


def test_a_successful_turn_resets_the_count(
    process: Process, clock: ManualClock, large: None, reads: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    process.commit(start("calls", "bad"))
    assert dies(process, tell(TaskReplied(2, 2, Success({})), "bad"))
    second = Process(process.database, clock, 2)
    with monkeypatch.context() as patch:
        patch.setattr(scope_loading, "load_scopes", lambda connection, batch, broken: None)
        second.commit(tell(TimerFired(99, 99), "bad"))  # stale, but it was read and the process survived
    assert marks(process.database) == []


def test_a_failed_batch_is_not_an_unclean_end(process: Process, clock: ManualClock, large: None) -> None:
    process.commit(start("wait"))
    clock.advance(seconds=60)

    def fail(_: Connection) -> None:
        raise OperationalError("a statement", None, Exception("the database fails"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process.writer, "_commit_apart", lambda _: [])
        assert process.writer._commit([tell(WOKEN), Write(fail)]) == []
    assert marks(process.database) == [("e", "node-1", 0)]
    assert process.kinds(tell(WOKEN)) == [ReceiptKind.APPLIED]
    assert marks(process.database) == []


def test_a_mark_whose_commit_was_not_answered_is_found_again(process: Process, clock: ManualClock, large: None) -> None:
    """The mark still has the number of unclean ends that involved the execution."""
    process.commit(start("wait"))
    clock.advance(seconds=60)
    with process.database.write() as connection:
        connection.execute(at_work.insert().values(execution_id="e", node_id="gone", unclean_ends=1))
    with process.database.write() as connection:
        mark_at_work(connection, process.node_id, ["e"])
    assert marks(process.database) == [("e", process.node_id, 2)]
    assert process.kinds(tell(WOKEN)) == [ReceiptKind.APPLIED]
    assert (parked(process.database), marks(process.database)) == (None, [])


def test_a_mark_of_a_running_node_is_left_alone(process: Process, clock: ManualClock, large: None) -> None:
    """That node may be running the execution, or may wait for the lock that this node holds."""
    process.commit(start("wait"))
    clock.advance(seconds=60)
    with process.database.write() as connection:
        register_node(connection, "neighbour", "session", 0)
        connection.execute(at_work.insert().values(execution_id="e", node_id="neighbour", unclean_ends=2))
    assert process.kinds(tell(WOKEN)) == [ReceiptKind.APPLIED]
    assert marks(process.database) == [("e", "neighbour", 2)]


def test_small_executions_are_never_marked(
    process: Process, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.commit(start("wait"))
    clock.advance(seconds=60)
    monkeypatch.setattr(marking, "mark_at_work", None)
    monkeypatch.setattr(marking, "clear_at_work", None)
    assert process.kinds(tell(WOKEN)) == [ReceiptKind.APPLIED]
