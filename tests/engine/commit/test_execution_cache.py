"""Executions cached between two turns: bounded, and never used when the database has a newer version."""

from typing import Any

import pytest
from sqlalchemy import update

from flowserver.base.json_values import json_bytes
from flowserver.base.limits import Limits
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit import execution_cache
from flowserver.engine.commit.batch import Batch
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Message, Start, Success, TaskReplied
from flowserver.machine.state import WaitKind
from flowserver.store.cluster.nodes import register_node
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.history_parts import REMEMBERED_BYTES_MAX
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.stored_execution import COSTLY_BYTES, SCOPE_BYTES, StoredExecution
from flowserver.store.flows import insert_flow
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from tests.engine.nodes import TOKENS, definition
from tests.store.rows import NODE, flow_row, new_execution, save_new, scope
from tests.support.clock import ManualClock


def stored(database: Database, name: str) -> StoredExecution:
    """A saved execution that waits for a call, as its batch leaves it."""
    with database.write() as connection:
        saved = save_new(connection, new_execution(name), scope(1, WaitKind.TASK, local={"text": "x" * 100}))
    saved.version = 1
    saved.execution.document_bytes = 111
    return saved


def take(database: Database, kept: ExecutionCache, *names: str) -> list[str]:
    with database.write() as connection:
        return sorted(kept.take(connection, names))


def test_a_cached_execution_is_taken_once(database: Database) -> None:
    kept = ExecutionCache(1_000_000)
    kept.keep(stored(database, "e"))
    assert take(database, kept, "other") == []
    assert take(database, kept, "e", "other") == ["e"]
    assert take(database, kept, "e") == []


def test_an_old_copy_is_not_used(database: Database) -> None:
    kept = ExecutionCache(1_000_000)
    for name in ("changed", "deleted", "same"):
        kept.keep(stored(database, name))
    with database.write() as connection:
        connection.execute(update(executions).where(executions.c.execution_id == "changed").values(version=2))
        connection.execute(executions.delete().where(executions.c.execution_id == "deleted"))
    assert take(database, kept, "changed", "deleted", "same") == ["same"]


def test_the_least_recently_used_is_evicted_first(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_cache, "EXECUTIONS_MAX", 2)
    _check_order(sqlite_database, ExecutionCache(1_000_000))


def test_the_least_recently_used_is_evicted_first_when_bytes_run_short(sqlite_database: Database) -> None:
    _check_order(sqlite_database, ExecutionCache(2 * (111 + SCOPE_BYTES)))


def _check_order(database: Database, kept: ExecutionCache) -> None:
    first, second, third = (stored(database, name) for name in "abc")
    kept.keep(first)
    kept.keep(second)
    assert take(database, kept, "a") == ["a"]
    kept.keep(first)
    kept.keep(third)
    assert take(database, kept, "a", "b", "c") == ["a", "c"]


def test_an_execution_that_is_too_large_evicts_no_other(sqlite_database: Database) -> None:
    kept = ExecutionCache(2 * (111 + SCOPE_BYTES))
    large = stored(sqlite_database, "large")
    large.execution.document_bytes = 10_000
    kept.keep(stored(sqlite_database, "small"))
    kept.keep(large)
    assert take(sqlite_database, kept, "small", "large") == ["small"]
    assert kept.held_bytes == 0


def test_the_cached_bytes_follow_the_rows(sqlite_database: Database) -> None:
    execution = stored(sqlite_database, "e")
    assert execution.held_bytes == 111 + SCOPE_BYTES
    assert execution.leases == {1: NODE}
    execution.note_removed(1)
    assert (execution.held_bytes, execution.leases, execution.saved) == (111, {}, {})


def test_an_execution_that_waits_for_many_messages_is_cached_if_loading_is_expensive(sqlite_database: Database) -> None:
    def kept(number: int, size: int, **of_root: Any) -> bool:
        execution = new_execution(f"e{number}")
        root = scope(1, local={"text": "x" * size}, step_input={}, **of_root)
        with sqlite_database.write() as connection:
            saved = save_new(connection, execution, root, scope(2, WaitKind.TOKEN, parent_id=1, step_input={}))
        saved.execution.document_bytes = size + 17
        return saved.is_worth_keeping

    assert kept(1, COSTLY_BYTES, next_item=1, open_items=1)
    assert not kept(2, 100, next_item=1, open_items=1), "loading is cheap"
    assert not kept(3, COSTLY_BYTES, option=0), "one list, so one message"


def test_clearing_removes_all(sqlite_database: Database) -> None:
    kept = ExecutionCache(1_000_000)
    kept.keep(stored(sqlite_database, "e"))
    kept.clear()
    assert take(sqlite_database, kept, "e") == []


POLLING = """
    - {type: task, name: poll, resourceArn: 'acs:fc:::services/s/functions/f', inputMappings: []}
    - {type: choice, name: again, inputMappings: [], default: {goto: poll}}
"""
LOOPS, TURNS, REPLY = 20, 30, 100_000


class Polling:
    """Executions that poll, one after the other, on one node."""

    def __init__(self, database: Database, clock: ManualClock, kept: ExecutionCache) -> None:
        self._database = database
        self._context = BatchContext(clock, Limits(), "null", TOKENS, Lease("node-1"), DefinitionCache(), kept)
        with database.write() as connection:
            register_node(connection, "node-1", "session", 0)
            insert_flow(connection, flow_row("polling", definition=definition(POLLING)))

    def start(self, name: str) -> Message:
        return self._commit(Envelope(name, Start(), NewExecution(name, "polling", name, "", {})))

    def reply(self, name: str, message: Message) -> Message:
        return self._commit(Envelope(name, message))

    def _commit(self, envelope: Envelope) -> Message:
        """Commit it, and return the reply of the call that it orders; each reply has a different text."""
        with self._database.write() as connection:
            batch = Batch(connection, self._context)
            result = batch.run([envelope])
        batch.settle()
        (call,) = (command for command in result.changes[0].commands if isinstance(command, InvokeTask))
        return TaskReplied(call.scope_id, call.wait_id, Success({"text": f"{call.wait_id:6}" + "x" * REPLY}))


def _held(stored: StoredExecution) -> int:
    """Bytes of all values that it keeps alive, each object once."""
    parts = [value for value, *_ in stored.parts._known.values()]
    documents = [value for each in stored.execution.scopes.values() for value in each.local.values()]
    return sum({id(value): json_bytes(value) for value in parts + documents}.values())


def test_loops_with_large_replies_hold_no_more_than_the_bound(sqlite_database: Database, clock: ManualClock) -> None:
    """A regression test: each once held its last 64 replies, and nothing counted them."""
    kept = ExecutionCache(4_000_000)
    polling = Polling(sqlite_database, clock, kept)
    replies = {f"loop-{number}": polling.start(f"loop-{number}") for number in range(LOOPS)}
    for _ in range(TURNS):
        replies = {name: polling.reply(name, message) for name, message in replies.items()}
        held = [_held(each) for each in kept._kept.values()]
        assert sum(held) <= kept.held_bytes <= 4_000_000
    assert max(held) <= REMEMBERED_BYTES_MAX + REPLY + 100
    assert len(held) >= 4  # and the execution within the bound is kept
