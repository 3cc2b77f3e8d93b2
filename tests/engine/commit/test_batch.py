"""One batch: many messages in one transaction, in order. A broken item is set aside without the others."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError

from flowserver.base.limits import Limits
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.batch import Batch, BatchResult
from flowserver.engine.commit.batch_context import MADE_BYTES, SHARED_BYTES, SHARED_TURN_STEPS, BatchContext
from flowserver.engine.commit.batch_items import Envelope, Item, Receipt, ReceiptKind, Write
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import (
    Continue,
    DeadlineReached,
    Failure,
    Message,
    RetryLostCall,
    Start,
    Stop,
    Success,
    TaskReplied,
    TaskReported,
    TimerFired,
)
from flowserver.machine.state import Status
from flowserver.store.cluster.nodes import register_node
from flowserver.store.definition_cache import CACHED_FLOWS_MAX, DefinitionCache, DefinitionUnusable
from flowserver.store.executions.due import due_callbacks, due_deadlines, due_timers, next_due, ready_executions
from flowserver.store.executions.history import list_events
from flowserver.store.executions.loading import load_executions
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.shown_executions import find_execution
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.flows import definition_id_of
from flowserver.store.schema.tables import at_work, definitions, execution_documents, executions, scopes, secrets
from flowserver.store.sql.database import Database
from tests.engine.nodes import TOKENS, definition
from tests.store.plans import listening
from tests.store.rows import flow_row, insert_flow
from tests.support.clock import ManualClock

FLOWS = {
    "patient": """
        - type: task
          name: t
          resourceArn: acs:fc:::services/s/functions/f
          pattern: waitForCallback
          retry: [{errors: [FnF.ALL], intervalSeconds: 60}]
    """,
    "pass": "- {type: pass, name: p}",
    "dropping": """
        - type: task
          name: t
          resourceArn: acs:fc:::services/s/functions/f
          outputMappings: [{target: ok, source: $local.ok}]
        - {type: wait, name: w, duration: 60}
    """,
    "wait": "- {type: wait, name: w, duration: 60}",
    "ask": "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', pattern: waitForCallback}",
    "loop": """
        - {type: pass, name: a}
        - type: choice
          name: again
          choices:
            - {condition: '1 == 2', goto: a}
    """,
    "long": "\n".join(f"- {{type: pass, name: p{number}}}" for number in range(10)),
}
WAITS = (1, 1)
"""Scope id and wait id of the only wait of these flows."""


class Bench:
    """Runs batches, each with newly loaded executions."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.cache = ExecutionCache(Limits().cached_executions_bytes_max)
        self.context = BatchContext(clock, Limits(), "null", TOKENS, Lease("node-1"), DefinitionCache(), self.cache)
        with database.write() as connection:
            register_node(connection, "node-1", "session", 0)
            for name, steps in FLOWS.items():
                insert_flow(connection, flow_row(name, definition=definition(steps)))

    def run(self, *items: Item) -> BatchResult:
        with self.database.write() as connection:
            return Batch(connection, self.context).run(items)

    def tried(self, *items: Item, is_shared: bool = False) -> int:
        """The number of items that a batch answers; the transaction is rolled back."""
        with suppress(InterruptedError), self.database.write() as connection:
            count = len(Batch(connection, self.context, is_shared=is_shared).run(items).answers)
            raise InterruptedError
        return count

    def keep(self, *execution_ids: str) -> None:
        """Put them into the cache, as after a turn that made a call."""
        for execution_id in execution_ids:
            self.cache.keep(self.load(execution_id))

    def kinds(self, *items: Item) -> list[ReceiptKind]:
        return [answer.kind for answer in self.run(*items).answers]

    def load(self, execution_id: str) -> StoredExecution:
        with self.database.write() as connection:
            return load_executions(connection, [execution_id])[0][execution_id]

    def change(self, statement: Any) -> None:
        with self.database.write() as connection:
            connection.execute(statement)

    def parked(self, execution_id: str) -> str | None:
        query = select(executions.c.parked_error).where(executions.c.execution_id == execution_id)
        return self.database.run_read(lambda c: c.execute(query).scalar_one())

    def event_ids(self, execution_id: str) -> list[int]:
        return [
            event.event_id
            for event in self.database.run_read(lambda c: list_events(c, execution_id, from_event_id=1, limit=999))
        ]


@pytest.fixture
def bench(database: Database, clock: ManualClock) -> Bench:
    return Bench(database, clock)


def start(flow: str, name: str = "e", **changes: Any) -> Envelope:
    values = {"execution_id": f"{flow}-{name}", "flow_name": flow, "name": name, "input_text": "", "input": {}}
    new = NewExecution(**{**values, **changes})
    return Envelope(new.execution_id, Start(), new)


def tell(execution_id: str, message: Message, **changes: Any) -> Envelope:
    return Envelope(execution_id, message, **changes)


def test_messages_of_one_execution_follow_each_other(bench: Bench) -> None:
    result = bench.run(start("wait"), tell("wait-e", Stop("E", "C")), tell("wait-e", Continue()))
    assert [answer.kind for answer in result.answers] == [ReceiptKind.APPLIED, ReceiptKind.APPLIED, ReceiptKind.ENDED]
    assert len(result.changes) == 1
    stored = bench.load("wait-e")
    assert (stored.version, stored.execution.status, stored.execution.scopes) == (1, Status.STOPPED, {})
    assert bench.event_ids("wait-e") == list(range(1, stored.execution.next_event_id))


def test_a_report_may_share_a_batch_with_the_start(bench: Bench) -> None:
    bench.run(start("ask", "before"))
    entered = bench.load("ask-before").execution.scopes[1].entered_event_id
    report = TaskReported(1, entered, None, Success({"answer": 1}))
    started, reported, again = bench.run(start("ask"), tell("ask-e", report), tell("ask-e", report)).answers
    assert (started.kind, reported.kind, again.kind) == (ReceiptKind.APPLIED, ReceiptKind.APPLIED, ReceiptKind.ENDED)
    with bench.database.read() as connection:
        events = list_events(connection, "ask-e", from_event_id=reported.event_id, limit=1)
        row = find_execution(connection, "ask", "e")
    assert events[0].type == "TaskSucceeded"
    assert row is not None
    assert row.output == '{"answer":1}'


def test_later_batches_continue_where_earlier_ones_stopped(bench: Bench) -> None:
    bench.run(start("ask"))
    assert bench.kinds(tell("ask-e", TaskReplied(*WAITS, Success({})))) == [ReceiptKind.APPLIED]
    assert bench.kinds(tell("ask-e", TaskReplied(*WAITS, Success({})))) == [ReceiptKind.STALE]
    assert bench.load("ask-e").version == 2
    bench.run(tell("ask-e", Stop()))
    stored = bench.load("ask-e")
    assert (stored.version, stored.execution.is_running) == (3, False)
    assert bench.event_ids("ask-e") == list(range(1, stored.execution.next_event_id))


def test_the_first_of_equal_names_in_a_batch_wins(bench: Bench) -> None:
    first, second, other = bench.run(
        start("wait"), start("wait", execution_id="twin"), start("pass", execution_id="other")
    ).answers
    assert first.kind is ReceiptKind.APPLIED
    assert (second.kind, second.existing) == (ReceiptKind.EXISTS, ("wait-e", Status.RUNNING))
    assert other.kind is ReceiptKind.APPLIED  # names are unique per flow
    with bench.database.write() as connection:
        assert load_executions(connection, ["twin"]) == ({}, {})


@pytest.mark.parametrize(("flow", "status"), [("wait", Status.RUNNING), ("pass", Status.SUCCEEDED)])
@pytest.mark.parametrize("together", [True, False])
def test_a_taken_name_gives_its_execution(bench: Bench, flow: str, status: Status, together: bool) -> None:
    twin = start(flow, execution_id="twin")
    if not together:
        bench.run(start(flow))
    receipt = bench.run(twin).answers[0] if not together else bench.run(start(flow), twin).answers[1]
    assert (receipt.kind, receipt.existing) == (ReceiptKind.EXISTS, (f"{flow}-e", status))


def test_a_start_returns_the_flow_and_the_execution(bench: Bench, clock: ManualClock) -> None:
    receipt: Receipt = bench.run(start("pass", input_text='{"a" :1}', input={"a": 1})).answers[0]
    assert receipt.flow is not None
    assert receipt.started is not None
    assert receipt.flow.name == "pass"
    assert (receipt.started.status, receipt.started.output) == (Status.SUCCEEDED, "{}")
    assert receipt.started.started_at == clock.now_ms()
    with bench.database.read() as connection:
        row = find_execution(connection, "pass", "e")
    assert row is not None
    assert (row.input, row.definition) == ('{"a" :1}', receipt.flow.definition)


def test_unknown_flows_and_executions(bench: Bench) -> None:
    result = bench.run(start("nowhere"), tell("unknown", Continue()))
    assert [answer.kind for answer in result.answers] == [ReceiptKind.NO_FLOW, ReceiptKind.UNKNOWN]
    assert result.changes == []


def test_an_empty_batch(bench: Bench) -> None:
    assert bench.run().answers == []


def test_a_long_run_is_divided_into_turns(bench: Bench) -> None:
    bench.context = replace(bench.context, limits=Limits(turn_steps_max=4))
    result = bench.run(start("long"))
    assert result.continuing == ["long-e"]
    with bench.database.read() as connection:
        assert ready_executions(connection, 9) == ["long-e"]
    turns = 1
    while result.continuing:
        result = bench.run(tell("long-e", Continue()))
        turns += 1
    assert turns == 3
    assert bench.load("long-e").execution.status is Status.SUCCEEDED


def test_continuing_executions_make_short_turns_while_the_writer_is_shared(bench: Bench) -> None:
    steps = "\n".join(f"- {{type: pass, name: p{number}}}" for number in range(300))
    with bench.database.write() as connection:
        insert_flow(connection, flow_row("longer", definition=definition(steps)))
    bench.run(start("longer"))

    def steps_made(*, is_shared: bool) -> int:
        with bench.database.write() as connection:
            batch = Batch(connection, bench.context, is_shared=is_shared)
            return batch.run([tell("longer-e", Continue())]).continued_steps

    assert steps_made(is_shared=True) == SHARED_TURN_STEPS
    assert steps_made(is_shared=False) > SHARED_TURN_STEPS
    assert bench.load("longer-e").execution.status is Status.SUCCEEDED


def test_a_batch_with_much_output_leaves_the_rest_to_another(bench: Bench) -> None:
    bench.context = replace(bench.context, made_bytes_max=1)
    items = [start("pass", "a"), start("pass", "b"), start("pass", "c")]
    assert [len(bench.run(*items[number:]).answers) for number in range(3)] == [1, 1, 1]
    assert {bench.load(item.execution_id).version for item in items} == {1}


def test_stops_and_other_items_have_separate_budgets(bench: Bench) -> None:
    bench.context = replace(bench.context, made_bytes_max=1)
    bench.run(start("wait", "a"))
    bench.run(start("wait", "b"))
    stops = [tell(f"wait-{name}", Stop("E", "C" * MADE_BYTES)) for name in "ab"]
    assert bench.tried(*stops, start("pass", "d"), start("pass", "f")) == 3


def test_a_stop_that_follows_another_message_loads_its_execution_whole(bench: Bench, clock: ManualClock) -> None:
    bench.run(start("wait"))
    clock.advance(seconds=60)
    fired = tell("wait-e", TimerFired(*WAITS))
    assert bench.kinds(fired, tell("wait-e", Stop())) == [ReceiptKind.APPLIED, ReceiptKind.ENDED]


def test_one_execution_makes_less_of_a_batch_while_the_writer_is_shared(bench: Bench) -> None:
    input = {"text": "x" * SHARED_BYTES}
    items = [
        start("wait", "a", input=input),
        tell("wait-a", TimerFired(*WAITS)),
        start("pass", "b"),
        start("pass", "c"),
    ]

    assert bench.tried(*items, is_shared=False) == 4
    assert bench.tried(*items, is_shared=True) == 1
    assert bench.tried(items[0], *items[2:], is_shared=True) == 3  # the other items still share the commit


def test_results_stored_only_in_the_history_count_as_output(bench: Bench) -> None:
    names = [str(number) for number in range(20)]
    bench.run(*(start("dropping", name) for name in names))
    size = MADE_BYTES // 5
    replies = [tell(f"dropping-{name}", TaskReplied(1, 1, Success({"x": name * size}))) for name in names[:10]]
    assert bench.tried(*replies) == 5


def test_freed_data_of_one_execution_gives_no_budget_to_others(bench: Bench, clock: ManualClock) -> None:
    input = {"text": "x" * (MADE_BYTES // 4)}
    for name in "abcd":
        bench.run(start("wait", name, input=input))
    clock.advance(seconds=60)
    fired = [tell(f"wait-{name}", TimerFired(*WAITS)) for name in "abcd"]
    new = [start("wait", f"new {number}", input=input) for number in range(8)]
    assert bench.tried(*fired, *new) == 4 + bench.tried(*new)


def test_a_large_execution_that_waits_keeps_its_mark(bench: Bench) -> None:
    bench.run(start("ask", "a"), start("ask", "b"))
    bench.change(update(executions).where(executions.c.execution_id == "ask-b").values(document_bytes=2_000_000))
    bench.context = replace(bench.context, made_bytes_max=1)
    with bench.database.write() as connection:
        marks = bench.context.crash_loop_guard.mark(connection, "node-1", ["ask-b"])
    bench.context.crash_loop_guard.marked(marks)
    bench.run(*(tell(f"ask-{name}", TaskReported(1, 2, None, Success({}))) for name in "ab"))
    marked = select(at_work.c.execution_id)
    assert bench.database.run_read(lambda c: c.execute(marked).scalars().all()) == ["ask-b"]


def test_executions_left_to_another_batch_are_not_loaded_again(bench: Bench) -> None:
    bench.run(start("ask", "a"), start("ask", "b"))
    bench.context = replace(bench.context, made_bytes_max=1)
    bench.keep("ask-a", "ask-b")
    with bench.database.write() as connection:
        batch = Batch(connection, bench.context)
        reports = [tell(f"ask-{name}", TaskReported(1, 2, None, Success({}))) for name in "ab"]
        assert len(batch.run(reports).answers) == 1
    assert bench.cache.held_bytes == 0
    batch.settle()
    with bench.database.write() as connection:
        assert list(bench.cache.take(connection, ["ask-a", "ask-b"])) == ["ask-b"]


def test_a_run_that_is_stopped_in_the_same_batch_does_not_continue(bench: Bench) -> None:
    bench.context = replace(bench.context, limits=Limits(turn_steps_max=4))
    assert bench.run(start("long"), tell("long-e", Stop())).continuing == []


def test_a_stale_report_settles_its_callback(bench: Bench) -> None:
    bench.run(start("pass", callback_token="token"))
    with bench.database.read() as connection:
        assert [due.token for due in due_callbacks(connection, 9)] == ["token"]
    report = TaskReported(1, 2, None, Success({}))
    assert bench.kinds(tell("unknown", report, settles="pass-e")) == [ReceiptKind.UNKNOWN]
    with bench.database.read() as connection:
        assert due_callbacks(connection, 9) == []


def test_a_callback_that_meets_a_pause_is_reported_again_later(bench: Bench) -> None:
    bench.run(start("patient"), start("pass", callback_token="token"))
    bench.run(tell("patient-e", TaskReplied(*WAITS, Failure("E"))))
    report = TaskReported(1, 2, None, Success({}))
    assert bench.kinds(tell("patient-e", report, settles="pass-e")) == [ReceiptKind.NOT_NOW]
    with bench.database.read() as connection:
        assert [due.execution_id for due in due_callbacks(connection, 9)] == ["pass-e"]


DAMAGE = {
    "scope": update(scopes).where(scopes.c.execution_id == "wait-bad").values(local="{"),
    "scope that is not an object": update(scopes).where(scopes.c.execution_id == "wait-bad").values(local="[]"),
    "scope at a step that does not exist": update(scopes)
    .where(scopes.c.execution_id == "wait-bad")
    .values(step_index=99),
    "input": update(execution_documents).where(execution_documents.c.execution_id == "wait-bad").values(input="["),
    "input that is not an object": update(execution_documents)
    .where(execution_documents.c.execution_id == "wait-bad")
    .values(input="[]"),
    "definition of another flow": update(executions)
    .where(executions.c.execution_id == "wait-bad")
    .values(definition_id="bad"),
    "deleted definition": update(executions)
    .where(executions.c.execution_id == "wait-bad")
    .values(definition_id="gone"),
    "instant out of range": update(executions).where(executions.c.execution_id == "wait-bad").values(started_at=10**18),
}

SQLITE_DAMAGE = {
    "scope that is not UTF-8": "UPDATE scopes SET local = CAST(x'7b22ff227d' AS TEXT)",
    "scope of another type": "UPDATE scopes SET attempt = 'one'",
    "input that is not UTF-8": "UPDATE execution_documents SET input = CAST(x'7b22ff223a317d' AS TEXT)",
    "input that is not text": "UPDATE execution_documents SET input = CAST('{}' AS BLOB)",
    "header that is not UTF-8": "UPDATE executions SET flow_name = CAST(x'ff' AS TEXT)",
    "status that does not exist": "UPDATE executions SET status = 'Lost'",
}
"""Values that SQLite accepts in a row of an execution."""


def spoil(bench: "Bench", statement: str, execution_id: str) -> None:
    with bench.database.write() as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        connection.exec_driver_sql(f"{statement} WHERE execution_id = '{execution_id}'")
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = OFF")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_execution_is_parked_and_the_others_continue(bench: Bench, clock: ManualClock, damage: str) -> None:
    bench.run(start("wait", "bad"), start("wait", "good"))
    bench.change(definitions.insert().values(definition_id="bad", flow_id="f", text="no: flow", created_at=0))
    bench.change(DAMAGE[damage])
    bench.context = replace(bench.context, definitions=DefinitionCache())
    clock.advance(seconds=60)
    fired = [tell(f"wait-{name}", TimerFired(*WAITS)) for name in ("bad", "good")]
    assert bench.kinds(*fired) == [ReceiptKind.PARKED, ReceiptKind.APPLIED]
    assert bench.load("wait-good").execution.status is Status.SUCCEEDED
    assert bench.parked("wait-bad")
    assert bench.parked("wait-good") is None
    with bench.database.read() as connection:  # nothing resumes it
        later = clock.now_ms() + 10**12
        assert due_timers(connection, later, 9) == []
        assert [due.execution_id for due in due_deadlines(connection, later, 9)] == [
            "wait-bad"
        ]  # but its deadline ends it
    for message in (TimerFired(*WAITS), Continue()):
        assert bench.kinds(tell("wait-bad", message)) == [ReceiptKind.PARKED]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_parked_execution_can_be_stopped(bench: Bench, clock: ManualClock, damage: str) -> None:
    bench.run(start("wait", "bad"))
    bench.change(DAMAGE[damage])
    bench.context = replace(bench.context, definitions=DefinitionCache())
    clock.advance(seconds=60)
    assert bench.kinds(tell("wait-bad", TimerFired(*WAITS))) == [ReceiptKind.PARKED]
    assert bench.kinds(tell("wait-bad", Stop("Enough"))) == [ReceiptKind.APPLIED]
    stored = bench.load("wait-bad")
    assert (stored.execution.status, stored.execution.scopes) == (Status.STOPPED, {})


@pytest.mark.parametrize("damage", SQLITE_DAMAGE)
def test_values_that_sqlite_cannot_decode_park_the_execution_which_can_be_stopped(
    sqlite_database: Database, clock: ManualClock, damage: str
) -> None:
    bench = Bench(sqlite_database, clock)
    bench.run(start("wait", "bad"), start("wait", "worse"), start("wait", "good"))
    for name in ("bad", "worse"):
        spoil(bench, SQLITE_DAMAGE[damage], f"wait-{name}")
    clock.advance(seconds=60)
    fired = [tell(f"wait-{name}", TimerFired(*WAITS)) for name in ("bad", "worse", "good")]
    assert bench.kinds(*fired) == [ReceiptKind.PARKED, ReceiptKind.PARKED, ReceiptKind.APPLIED]
    assert bench.parked("wait-bad")
    with bench.database.read() as connection:
        assert due_timers(connection, clock.now_ms(), 9) == []
        assert ready_executions(connection, 9) == []
    assert bench.kinds(tell("wait-bad", Stop("Enough"))) == [ReceiptKind.APPLIED]
    clock.advance(seconds=10**9)
    assert bench.kinds(tell("wait-worse", DeadlineReached())) == [ReceiptKind.APPLIED]
    assert bench.load("wait-bad").execution.status is Status.STOPPED
    assert bench.load("wait-worse").execution.status is Status.TIMED_OUT


@pytest.mark.parametrize(("table", "column"), [("scopes", "wake_at"), ("executions", "deadline_at")])
def test_an_execution_without_a_valid_wakeup_instant_is_parked(
    sqlite_database: Database, clock: ManualClock, table: str, column: str
) -> None:
    bench = Bench(sqlite_database, clock)
    bench.run(start("wait", "bad"), start("wait", "good"))
    spoil(bench, f"UPDATE {table} SET {column} = 'later'", "wait-bad")
    with bench.database.read() as connection:
        assert next_due(connection, clock.now_ms()) == clock.now_ms() + 60_000
        assert ready_executions(connection, 9) == ["wait-bad"]
    assert bench.kinds(tell("wait-bad", Continue())) == [ReceiptKind.PARKED]
    with bench.database.read() as connection:
        assert ready_executions(connection, 9) == []


@pytest.mark.parametrize("damage", [name for name in DAMAGE if not name.startswith("scope")])
@pytest.mark.parametrize("was_parked", [True, False])
def test_a_message_to_a_damaged_ended_execution_counts_as_delivered(
    bench: Bench, damage: str, was_parked: bool
) -> None:
    """So the callback of a sub-flow is settled."""
    bench.run(start("wait", "bad"), start("pass", callback_token="token"))
    if was_parked:
        bench.change(update(executions).where(executions.c.execution_id == "wait-bad").values(parked_error="a bug"))
    bench.run(tell("wait-bad", Stop()))
    bench.change(DAMAGE[damage])
    report = TaskReported(1, 2, None, Success({}))
    result = bench.run(tell("wait-bad", report, settles="pass-e"))
    assert [answer.kind for answer in result.answers] == [ReceiptKind.ENDED]
    assert result.parked == []
    with bench.database.read() as connection:
        assert due_callbacks(connection, 9) == []


def test_parking_undoes_the_earlier_work_of_the_batch(bench: Bench, clock: ManualClock) -> None:
    bench.run(start("ask", "bad"), start("wait", "good"))
    before = bench.load("ask-bad")
    bench.change(update(executions).where(executions.c.execution_id == "ask-bad").values(flow_name="changed"))

    def poison(connection: Any) -> None:
        raise AssertionError

    result = bench.run(
        tell("ask-bad", TaskReplied(*WAITS, Success({}))),
        tell("ask-bad", TaskReported(1, 2, None, Success(output=object()))),  # type: ignore[arg-type]
        tell("wait-good", Stop()),
        Write(poison),
    )
    assert [answer.kind for answer in result.answers[:3]] == [
        ReceiptKind.PARKED,
        ReceiptKind.PARKED,
        ReceiptKind.APPLIED,
    ]
    assert isinstance(result.answers[3], AssertionError)
    assert [changes.stored.execution.execution_id for changes in result.changes] == ["wait-good"]
    after = bench.load("ask-bad")
    assert (after.version, after.execution.scopes) == (before.version + 1, before.execution.scopes)
    assert "TypeError" in str(after.parked_error)


def test_a_start_of_an_unusable_definition_writes_nothing(bench: Bench) -> None:
    bench.change(update(definitions).where(definitions.c.flow_id == "flow-pass").values(text="no: flow"))
    assert bench.kinds(start("pass"), start("wait")) == [ReceiptKind.PARKED, ReceiptKind.APPLIED]
    with bench.database.write() as connection:
        assert load_executions(connection, ["pass-e"]) == ({}, {})


def test_a_definition_is_compiled_once_and_the_least_recently_used_is_evicted(sqlite_database: Database) -> None:
    known = DefinitionCache()
    texts = [definition(f"- {{type: pass, name: p{number}}}") for number in range(CACHED_FLOWS_MAX + 1)]
    with sqlite_database.write() as connection:
        for number, each in enumerate(texts):
            insert_flow(connection, flow_row(f"f{number}", definition=each))
        ids = [definition_id_of(f"flow-f{number}", each) for number, each in enumerate(texts)]
        flows = {each: known.get(connection, each) for each in ids[:-1]}
        assert known.get(connection, ids[0]) is flows[ids[0]]
        known.get(connection, ids[-1])  # evicts the least recently used definition
        connection.execute(delete(definitions))
        assert known.get(connection, ids[0]) is flows[ids[0]]
        with pytest.raises(DefinitionUnusable):
            known.get(connection, ids[1])


def test_a_hundred_starts_need_as_many_statements_as_two(bench: Bench) -> None:
    def sent(*items: Item) -> int:
        heard: list[str] = []
        with bench.database.write() as connection, listening(connection, lambda _, sql, values: heard.append(sql)):
            Batch(connection, bench.context).run(items)
        return len(heard)

    bench.run(start("wait"))  # compiles the definition
    few = sent(*(start("wait", f"few-{number}") for number in range(2)))
    assert few == sent(*(start("wait", f"many-{number}") for number in range(100)))
    assert few > 0


def test_a_call_that_the_same_batch_settles_is_not_made(bench: Bench) -> None:
    """A lost call is ordered again, and in the same batch a report with the step's token arrives."""
    bench.run(start("ask"))
    ordered = bench.run(tell("ask-e", RetryLostCall(*WAITS, 1)))
    assert [type(each) for changes in ordered.changes for each in changes.commands] == [InvokeTask]
    settled = bench.run(tell("ask-e", RetryLostCall(*WAITS, 2)), tell("ask-e", TaskReported(1, 2, None, Success({}))))
    assert [answer.kind for answer in settled.answers] == [ReceiptKind.APPLIED] * 2
    assert not [each for changes in settled.changes for each in changes.commands if isinstance(each, InvokeTask)]


def keeping(*names: str) -> Write:
    """Inserts secrets whose names may already be taken."""

    def keep(connection: Connection) -> str:
        for name in names:
            connection.execute(insert(secrets).values(name=name, value=""))
        return names[-1]

    return Write(keep)


def test_a_failing_write_is_undone_and_the_others_stay(bench: Bench) -> None:
    def fails(_: Connection) -> None:
        raise ValueError("a bug")

    def forgives(connection: Connection) -> str:
        with pytest.raises(IntegrityError), connection.begin_nested():
            connection.execute(insert(secrets).values(name="one", value=""))
        return "forgiven"

    writes = [keeping("one"), keeping("lost", "one"), Write(fails), Write(forgives), keeping("two")]
    answers = bench.run(start("ask"), *writes, tell("ask-e", Stop("Enough", ""))).answers
    assert answers[1] == "one"
    assert isinstance(answers[2], IntegrityError)
    assert isinstance(answers[3], ValueError)
    assert answers[4:6] == ["forgiven", "two"]
    assert [answers[0].kind, answers[6].kind] == [ReceiptKind.APPLIED] * 2
    names = bench.database.run_read(lambda c: list(c.execute(select(secrets.c.name)).scalars()))
    assert sorted(names) == ["one", "two"]
    assert bench.load("ask-e").execution.status is Status.STOPPED


def test_a_write_that_suppresses_a_failed_statement_fails_alone(
    postgres_database: Database, clock: ManualClock
) -> None:
    """PostgreSQL then rejects all statements until the savepoint is rolled back."""
    bench = Bench(postgres_database, clock)

    def hides(connection: Connection) -> None:
        with suppress(DBAPIError):
            connection.exec_driver_sql("SELECT nothing FROM nowhere")

    hidden, kept = bench.run(Write(hides), keeping("one")).answers
    assert isinstance(hidden, DBAPIError)
    assert kept == "one"


def test_a_connection_lost_in_a_write_fails_the_batch(postgres_database: Database, clock: ManualClock) -> None:
    bench = Bench(postgres_database, clock)

    def dies(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    def tells_otherwise(_: Connection) -> None:
        raise InterfaceError("SELECT 1", None, Exception("gone"), connection_invalidated=True)

    for lost in (dies, tells_otherwise):
        with pytest.raises((OperationalError, InterfaceError)) as told:
            bench.run(keeping("one"), Write(lost), keeping("two"))
        assert told.value.connection_invalidated
    assert bench.run(keeping("one")).answers == ["one"]
