"""Checks each execution after every durable commit, and again at the end."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from sqlalchemy import exists, func, select

from flowserver.base.derived_ids import child_execution_id
from flowserver.base.json_values import load_json_object
from flowserver.engine.commit.batch import BatchResult
from flowserver.engine.commit.batch_items import Envelope, Item, ReceiptKind
from flowserver.language.graph import FunctionTarget
from flowserver.machine.commands import CancelInvocation, InvokeTask, ReportCallback, StopInvocation
from flowserver.machine.events import Event, EventType
from flowserver.machine.messages import Message
from flowserver.machine.state import Execution, Status, WaitKind
from flowserver.machine.turn import submission_key
from flowserver.store.executions.due import due_callbacks
from flowserver.store.executions.history import events_of, list_events
from flowserver.store.executions.history_parts import PartReader
from flowserver.store.executions.loading import load_executions
from flowserver.store.executions.saving import Changes
from flowserver.store.integrity.invariant import violations
from flowserver.store.schema.tables import (
    STOP_DUE,
    executions,
    finished_items,
    histories,
    kept_items,
    kept_scopes,
    scopes,
)
from tests.simulation.case import Case
from tests.simulation.functions import SLOW_LEAF, SLOW_SUB, SUB, Answer, event_text
from tests.simulation.history_check import check_header, check_history
from tests.simulation.reference import Call, Expected
from tests.simulation.shared_database import SharedDatabase
from tests.support.invariants import History, check_counters, check_document_bytes, check_end, check_wait
from tests.support.world import callee_of, whole

EVENTS_MAX = 1_000_000
REAL_CHILDREN = (SUB, SLOW_SUB, SLOW_LEAF)
REDRIVES_MAX = 3
"""The most redrives of one execution: most fail again in the same way."""

OWNERLESS = (
    select(executions.c.execution_id)
    .where(executions.c.parent_wait.is_not(None), executions.c.stopped_at.is_(None), ~executions.c.stop_due)
    .where(
        ~exists().where(
            scopes.c.execution_id == executions.c.parent_id,
            scopes.c.wait_id == executions.c.parent_wait,
            scopes.c.wait.in_(("task", "child")),
        )
    )
)
"""Owned sub-flows that run, though no step waits for them and nothing is to stop them."""

WaitKey = tuple[str, int, int]
"""(execution_id, scope_id, wait_id): one attempt of one task."""


class Violation(BaseException):
    """A check failed, for one execution if `run` is given. Not an `Exception`: the engine must not handle it."""

    def __init__(self, what: str, run: "Run | None" = None) -> None:
        super().__init__(what)
        self.run = run


@dataclass(frozen=True, slots=True)
class DeliveredMessage:
    """One message to an execution, and the number of the execution's events before the batch."""

    commit: int
    node_id: str
    message: Message
    kind: ReceiptKind
    events: int


@dataclass(slots=True)
class Attempt:
    """One attempt of a task as ordered, and its answer."""

    callee: str
    answer: Answer
    is_real_child: bool
    is_reached: bool = False


@dataclass(slots=True)
class Run:
    """One execution as its commits describe it."""

    case: Case
    expected: Expected
    execution: Execution
    is_child: bool
    history: History = field(default_factory=History)
    counters: tuple[int, int, int] = (1, 1, 1)
    events: list[Event] = field(default_factory=list)
    calls: Counter[Call] = field(default_factory=Counter)
    waits: dict[str, list[int]] = field(default_factory=dict)
    """By idempotency key, the wait ids of the attempts; the index is the number of the retry."""
    orders: dict[str, int] = field(default_factory=dict)
    """By idempotency key, the last attempt number."""
    children: dict[str, str] = field(default_factory=dict)
    """By idempotency key, the execution of the sub-flow that the last attempt waits, or waited, for."""
    log: list[DeliveredMessage] = field(default_factory=list)
    commits: int = 0
    is_silenced: bool = False
    redrives: int = 0
    starts_over: int = 0
    """How often it was redriven with another definition, or from a step, while it waited for a redrive."""
    definition_id: str = ""
    """Of the definition that it runs."""

    @property
    def ends_by_stop(self) -> bool:
        """Whether it runs until it is stopped, or until its deadline while its parent is silenced."""
        return self.execution.flow_name in (SLOW_SUB, SLOW_LEAF)


class Witness:
    """Follows all executions of a world."""

    def __init__(self, database: SharedDatabase, random: Random, deep_check: float) -> None:
        self._database = database
        self._random = random
        self._deep_check = deep_check
        self.runs: dict[str, Run] = {}
        self.all: list[Run] = []
        self.interruptible: list[Run] = []
        """Executions that will be interrupted, unless they end first."""
        self.attempts: dict[WaitKey, Attempt] = {}
        self.waiting: list[Run] = []
        """Executions of which steps have waited for a redrive."""
        self.redrivable: list[Run] = []
        """Executions that have ended without success. Some may be running again."""
        self.running = 0
        self.compares = True
        self.commits = 0
        self.turns = 0
        self.node_id = ""
        """The node whose transaction is under way."""
        self.cases: dict[str, Case] = {}
        """By execution id, the cases of executions that may still be started."""

    def committed(self, items: Sequence[Item], result: BatchResult) -> None:
        """Check a durable batch; raises Violation."""
        self.commits += 1
        before = {changes.stored.execution.execution_id: 0 for changes in result.changes}
        for execution_id in before:
            known = self.runs.get(execution_id)
            before[execution_id] = 0 if known is None else len(known.events)
        for changes in result.changes:
            self._follow(changes)
        self._note(items, result, before)
        self._check_reported(items, result)
        self.check_none_stuck()

    def is_silenced(self, execution_id: str) -> bool:
        """Whether only its deadline may still reach the execution."""
        run = self.runs.get(execution_id)
        return run is not None and run.is_silenced and run.execution.is_running

    def _follow(self, changes: Changes) -> None:
        execution = changes.stored.execution
        run = self.runs.get(execution.execution_id)
        if run is None:
            run = self._begin(changes)
        try:
            self._check(run, changes)
            if self._random.random() < self._deep_check:
                self.check_rows(run)
        except AssertionError as error:
            raise Violation(str(error) or "see the assertion", run) from error

    def _begin(self, changes: Changes) -> Run:
        execution = changes.stored.execution
        case = self.cases[execution.execution_id]
        is_child = execution.flow_name in REAL_CHILDREN
        expected = case.plan.expected_of_child(execution.input, case.functions) if is_child else case.expected
        run = Run(case, expected, execution, is_child)
        self.runs[execution.execution_id] = run
        self.all.append(run)
        if case.interruption and not is_child:
            self.interruptible.append(run)
        self.running += 1
        return run

    def _check(self, run: Run, changes: Changes) -> None:
        execution = changes.stored.execution
        if changes.is_only_taken_up:
            assert changes.stored.version == run.commits, "another node's commit was overwritten"
            run.commits += 1
            run.execution = replace(run.execution, callback_token=execution.callback_token)
            return
        assert run.commits == 0 or run.execution.is_running or changes.is_redriven, "an ended execution changed"
        if changes.is_redriven:
            self._redriven(run, changes.events)
        assert changes.stored.version == run.commits, "another node's commit was overwritten"
        run.execution = replace(execution, scopes={key: replace(scope) for key, scope in execution.scopes.items()})
        run.commits += 1
        events = [whole(event) for event in changes.events]
        run.history.add(events)
        run.events += events
        run.definition_id = changes.stored.definition_id
        if changes.is_redriven:
            self._forget_retries(run, events)
        self._check_wait_for_redrive(run)
        assert execution.next_event_id == len(run.history.open)
        run.counters = check_counters(execution, run.counters)
        check_document_bytes(execution)
        self._check_commands(run, changes)
        if not execution.is_running:
            self.running -= 1
            check_end(execution, run.history)
            if execution.status is not Status.SUCCEEDED and not run.is_child and run.redrives < REDRIVES_MAX:
                self.redrivable.append(run)

    def _redriven(self, run: Run, events: Sequence[Event]) -> None:
        """The execution runs again: its retries count from zero, and messages reach it again."""
        assert run.execution.status is not Status.SUCCEEDED
        run.redrives += 1
        if run.execution.is_running:
            redriven = next(each for each in events if each.type is EventType.EXECUTION_REDRIVEN)
            run.starts_over += '"waitingSteps"' not in redriven.detail
        else:
            self.running += 1
            run.waits.clear()
            run.is_silenced = False

    def _forget_retries(self, run: Run, events: Sequence[Event]) -> None:
        """The retries of steps that waited for the redrive count from zero; those of other steps continue."""
        redriven = max(each.event_id for each in events if each.type is EventType.EXECUTION_REDRIVEN)
        for event in reversed(run.events[: redriven - 1]):
            if event.type is EventType.EXECUTION_REDRIVEN:
                break
            entered = run.history.open[event.event_id]
            if event.type is EventType.STEP_WAITING_FOR_REDRIVE and entered is not None:
                first = load_json_object(entered.entered.detail).get("resumes", entered.entered.event_id)
                run.waits.pop(f"{run.execution.execution_id}-{first}", None)  # a repeated entry keeps the first key

    def _check_wait_for_redrive(self, run: Run) -> None:
        """While steps wait for a redrive, the execution shows the failure that would have ended it."""
        execution = run.execution
        if not execution.is_running or not execution.waiting_steps:
            return
        if execution.error is not None and self.compares:  # it is not loaded again
            causes = {cause for error, cause in run.expected.problems if error == execution.error}
            assert causes & {None, execution.cause}, f"it waits, and was expected to end with {run.expected.problems}"
        if run not in self.waiting:
            self.waiting.append(run)

    def _check_commands(self, run: Run, changes: Changes) -> None:
        """Calls are ordered only for current waits, and dropped only for waits that are over."""
        commands, execution = changes.commands, run.execution
        cancelled = {(each.scope_id, each.wait_id) for each in commands if isinstance(each, CancelInvocation)}
        scopes = execution.scopes.values()
        waiting = {(each.scope_id, each.wait_id): each.attempt for each in scopes if each.wait is WaitKind.TASK}
        assert not waiting.keys() & cancelled, "a call that is waited for is dropped"
        for command in commands:
            if isinstance(command, InvokeTask):
                key = (command.scope_id, command.wait_id)
                assert waiting.get(key) == command.attempt, f"a settled wait is called: {command}"
                self._register(run, command)
        stopped = {each.submission_key for each in commands if isinstance(each, StopInvocation)}
        assert (None in stopped) == (execution.status in (Status.STOPPED, Status.TIMED_OUT))
        held = {
            submission_key(execution.execution_id, each)
            for each in scopes
            if each.wait in (WaitKind.TASK, WaitKind.TOKEN)
        }
        assert not held & stopped, "an invocation that is waited for is stopped"
        reports = sum(isinstance(command, ReportCallback) for command in commands)
        assert reports == int(not execution.is_running and execution.callback_token is not None)

    def _register(self, run: Run, call: InvokeTask) -> None:
        """Record an order. The attempts of one entry of a step share a key, and their numbers rise."""
        key = call.idempotency_key
        assert call.attempt > run.orders.get(key, 0), f"attempt {call.attempt} of {key} is ordered twice"
        run.orders[key] = call.attempt
        waits = run.waits.setdefault(key, [])
        if call.wait_id in waits:
            assert call.wait_id == waits[-1], f"an earlier attempt of {key} is ordered again"
            return
        self._check_child(run, call, is_first=not waits)
        waits.append(call.wait_id)
        callee, retry = callee_of(call.target), len(waits) - 1
        event = call.input if isinstance(call.target, FunctionTarget) or call.params is None else call.params
        run.calls[callee, event_text(event), retry] += 1
        is_real = callee in REAL_CHILDREN and run.case.has_real_children
        answer = Answer() if is_real and callee == SUB else run.case.functions.answer(callee, event, retry)
        self.attempts[run.execution.execution_id, call.scope_id, call.wait_id] = Attempt(callee, answer, is_real)

    def _check_child(self, run: Run, call: InvokeTask, *, is_first: bool) -> None:
        """A redrive continues the execution of a sub-flow that its step waited for last; nothing else continues one."""
        before = run.children.get(call.idempotency_key)
        continues = is_first and before in self.runs
        assert call.continues_child == continues, f"a sub-flow is {'continued' if call.continues_child else 'repeated'}"
        if call.child_wait is not None:
            child = child_execution_id(run.execution.execution_id, call.scope_id, call.child_wait)
            assert not continues or child == before, "another execution of the sub-flow is continued"
            run.children[call.idempotency_key] = child

    def _note(self, items: Sequence[Item], result: BatchResult, before: dict[str, int]) -> None:
        for item, answer in zip(items, result.answers, strict=True):
            if isinstance(item, Envelope) and (run := self.runs.get(item.execution_id)) is not None:
                if answer.kind is ReceiptKind.PARKED:
                    raise Violation(f"{item} parked its execution", run)
                first = before.get(item.execution_id, len(run.events))
                run.log.append(DeliveredMessage(self.commits, self.node_id, item.message, answer.kind, first))
                self.turns += 1

    def _check_reported(self, items: Sequence[Item], result: BatchResult) -> None:
        """An execution whose end was reported must not be due for another report."""
        told = {
            item.settles: self.runs[item.settles]
            for item, answer in zip(items, result.answers, strict=True)
            if isinstance(item, Envelope) and item.settles is not None and answer.kind is not ReceiptKind.NOT_NOW
        }
        if told:
            with self._database.read() as connection:
                due = {each.execution_id for each in due_callbacks(connection, EVENTS_MAX)}
            for execution_id, run in told.items():
                if execution_id in due:
                    raise Violation("its end was reported, and is due to be reported again", run)

    # Deeper

    def check_rows(self, run: Run) -> None:
        """The rows equal the state in memory, and follow from the stored history."""
        execution = run.execution
        with self._database.read() as connection:
            found, broken = load_executions(connection, [execution.execution_id])
            events = list_events(connection, execution.execution_id, from_event_id=1, limit=EVENTS_MAX)
        assert not broken
        stored = found[execution.execution_id]
        if not execution.is_running:
            assert stored.execution.document_bytes == execution.kept_bytes
            stored.execution.document_bytes = 0
        assert stored.version == run.commits, "the rows are not of the last commit"
        assert stored.execution == replace(execution, output=None, error=None, cause=None, failed_step=None), (
            "memory and rows differ"
        )
        assert events == run.events, "the stored history differs from the committed events"
        for scope in execution.scopes.values():
            check_wait(execution, scope)
        check_history(execution, events)

    def check_none_stuck(self) -> None:
        """Invariant 3, checked for all rows at once. Simulated sub-flows have no execution."""
        with self._database.read() as connection:
            found = connection.execute(select(violations)).all()
            ownerless = connection.execute(OWNERLESS).scalars().all()
        for execution_id in ownerless:
            raise Violation("no step waits for it, and it is not marked to be stopped", self.runs[execution_id])
        for row in found:
            run = self.runs[row.execution_id]
            scope = run.execution.scopes.get(row.scope_id)
            attempt = None if scope is None else self.attempts.get((row.execution_id, scope.scope_id, scope.wait_id))
            if row.rule != "child" or attempt is None or attempt.is_real_child:
                raise Violation(f"invariant {row.rule}: {row.detail}", run)

    def check_stopped(self) -> None:
        """Once recovery has run, no sub-flow runs that was to be stopped."""
        with self._database.read() as connection:
            left = connection.execute(select(executions.c.execution_id).where(STOP_DUE)).scalars().all()
        for execution_id in left:
            raise Violation("no step waits for it, and it runs on", self.runs[execution_id])

    # The end

    def check_all_ended(self, compares: bool) -> None:
        """Every execution has ended, left no rows behind, and has the result that the reference expects."""
        kept, told = self._read_all()
        assert kept.keys() == self.runs.keys()
        for execution_id, run in self.runs.items():
            try:
                row = kept[execution_id]
                assert row.status == str(run.execution.status) != str(Status.RUNNING), "it has not ended"
                assert not row.callback_due, "its end was not reported"
                assert (row.version, row.parked_error) == (run.commits, None)
                assert told[execution_id] == run.events, "the stored history differs from the committed events"
                check_header(run.execution, run.events[-1])
                is_cut_short = run.is_silenced or run.ends_by_stop or run.execution.status is Status.STOPPED
                if compares and not is_cut_short:
                    _compare(run)
            except AssertionError as error:
                raise Violation(str(error) or "see the assertion", run) from error

    def _read_all(self) -> tuple[dict[str, Any], dict[str, list[Event]]]:
        """All headers by id, and all histories."""
        told: dict[str, list[Event]] = {}
        with self._database.read() as connection:
            kept = {row.execution_id: row for row in connection.execute(select(executions))}
            in_order = select(histories).order_by(histories.c.execution_id, histories.c.last_event_id)
            for row in connection.execute(in_order):
                told.setdefault(row.execution_id, []).extend(events_of(row, PartReader(connection)))
            succeeded = select(executions.c.execution_id).where(executions.c.status == str(Status.SUCCEEDED))
            for table in (kept_scopes, kept_items):
                of_succeeded = select(table.c.scope_id).where(table.c.execution_id.in_(succeeded))
                assert connection.execute(of_succeeded).first() is None, f"{table.name} of a success are left"
            for table in (scopes, finished_items):
                left = connection.execute(select(func.count()).select_from(table)).scalar_one()
                assert left == 0, f"{table.name} are left"
        return kept, told


def _compare(run: Run) -> None:
    execution, expected = run.execution, run.expected
    if expected.output is None:
        assert execution.status is Status.FAILED, f"expected one of {expected.problems}"
        causes = {cause for error, cause in expected.problems if error == execution.error}
        assert causes & {None, execution.cause}, f"expected one of {expected.problems}"
        return
    assert (execution.status, execution.output) == (Status.SUCCEEDED, expected.output)
    if execution.redrive_count:
        return
    assert _entered(run.events) == expected.entered, "other steps were entered than expected"
    assert run.calls == expected.calls, "other calls were made than expected"


def _entered(events: Iterable[Event]) -> Counter[str]:
    return Counter(event.step_name for event in events if event.type is EventType.STEP_ENTERED)
