"""Runs one case in virtual time over the machine: the clock jumps from each instant at which something is due to the
next, so a wait of 30 days costs as much as a pass step.

What happens at one instant happens in the order in which it was ordered, answers before timers. Sub-flows that run
share the clock. Nothing here reads a clock, a file or a socket.

A crash of the node leaves what is committed: the executions as their last turns left them, the sub-flows, invocations
and messages that were submitted. Calls that are under way are lost, and made again under the same key. The node is back
at once.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.flowtests.budget import UNIT_BYTES, Budget
from flowserver.flowtests.calls import Answer, Calls, MockedCalls, Ordered
from flowserver.flowtests.cases import Case, Crash, Source, TestFile
from flowserver.flowtests.findings import CaseStopped, Finding
from flowserver.flowtests.records import Call, Record
from flowserver.flowtests.reloading import reloaded
from flowserver.language.graph import TaskStep
from flowserver.machine.advance import advance
from flowserver.machine.commands import Command, InvokeTask, ReportCallback, StopInvocation, StopSubFlow
from flowserver.machine.events import Event
from flowserver.machine.mappings import Environment, MissingSource
from flowserver.machine.messages import (
    NOT_AWAITED,
    Continue,
    DeadlineReached,
    Failure,
    Message,
    Result,
    RetryLostCall,
    Start,
    TaskReplied,
    TaskReported,
    TimerFired,
)
from flowserver.machine.state import Execution, WaitKind
from flowserver.machine.step_paths import path_of
from flowserver.machine.step_summary import StepSummary
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.machine.turn import Turn

LAST_STEPS: Final = 5
"""Steps that the failure of a run without an end shows."""

Observer = Callable[["Running", Event, str], None]
"""Sees each event of a run, with the path of its step."""


@dataclass(eq=False)
class Running:
    """One execution of a run: that of the case, or of a sub-flow."""

    source: Source
    execution: Execution
    is_owned: bool = False
    """Whether it is stopped when the step that started it no longer waits for it."""
    paths: StepSummaries = field(default_factory=StepSummaries)


class VirtualRun:
    """One run of a case."""

    def __init__(
        self,
        file: TestFile,
        case: Case,
        limits: Limits,
        missing_source: MissingSource,
        observe: Observer | None = None,
        budget: Budget | None = None,
        calls: Calls | None = None,
    ) -> None:
        self._file = file
        self._case = case
        self._limits = limits
        self._missing_source = missing_source
        self._observe = observe
        self._budget = budget or Budget()
        self._now_ms = case.started_ms
        self._numbers = count()
        self._due: list[tuple[int, int, int, Running, Message | Crash]] = []
        self._by_id: dict[str, Running] = {}
        self._submitted: set[str] = set()
        """The keys of sub-flows and invocations: what a crash leaves is not submitted again."""
        self._calls = calls or MockedCalls(file, case, self._budget)
        self._root = self._open(file.source, file.flow_name, case.execution_name, case.input, None)
        self.record = Record(file.source.flow, self._root.execution)

    @property
    def steps(self) -> list[StepSummary]:
        """What became of each step of the case's own flow, in the order in which they were entered first."""
        return self._root.paths.steps()

    def run(self) -> Record:
        """Run to the end of the execution and of its sub-flows.

        Raises CaseStopped if the mocks do not let it, or its limits; and BudgetSpent.
        """
        self._later(self._root, self._now_ms, Start())
        while self._due:
            due_ms, _, _, running, message = heapq.heappop(self._due)
            if isinstance(message, Crash):
                self._now_ms = max(self._now_ms, due_ms)
                self._crash()
            elif _is_awaited(running.execution, message, due_ms):
                self._now_ms = max(self._now_ms, due_ms)
                self._tell(running, message)
        return self.record

    def _open(
        self, source: Source, flow_name: str, name: str, given: JsonObject, callback_token: str | None
    ) -> Running:
        execution_id = f"execution-{len(self._by_id) + 1}"
        execution = Execution(execution_id, flow_name, name, given, 0, 0, callback_token=callback_token)
        running = self._by_id[execution_id] = Running(source, execution)
        return running

    def _tell(self, running: Running, message: Message) -> None:
        turn = self._advance(running, message)
        while turn.more:
            turn = self._advance(running, Continue())
        if isinstance(message, Start):
            self._later(running, running.execution.deadline_at, DeadlineReached())

    def _advance(self, running: Running, message: Message) -> Turn:
        environment = Environment(self._now_ms, self._limits, self._missing_source, _token_for)
        turn = advance(running.source.flow, running.execution, message, environment)
        self._note(running, turn)
        for command in turn.commands:
            self._carry_out(running, command)
        scopes = running.execution.scopes
        for scope_id in turn.touched:
            wake_at = scopes[scope_id].wake_at
            if wake_at is not None:
                self._later(running, wake_at, TimerFired(scope_id, scopes[scope_id].wait_id))
        return turn

    def _note(self, running: Running, turn: Turn) -> None:
        record, limits = self.record, self._limits
        self._spend(1 + sum(turn.part_bytes.values()) // UNIT_BYTES)
        for event in turn.events:
            path = running.paths.add(event).path
            self._spend(1 + (len(event.detail) + len(path)) // UNIT_BYTES)
            if running is self._root:
                record.add(event, path)
            if self._observe is not None:
                self._observe(running, event, path)
        record.turns += 1
        record.events += len(turn.events)
        if record.events > limits.flow_test_events_max or record.turns > limits.flow_test_turns_max:
            raise CaseStopped(self._without_end(record.events > limits.flow_test_events_max))

    def _spend(self, units: int) -> None:
        self.record.units += units
        self._budget.spend(units)

    def _without_end(self, has_many_events: bool) -> Finding:
        limits = self._limits
        passed = f"{limits.flow_test_events_max} events" if has_many_events else f"{limits.flow_test_turns_max} turns"
        last = ", ".join(self.record.entered[-LAST_STEPS:])
        return Finding(
            f"the execution does not end: it has made more than {passed}",
            self._file.place(self._case.span),
            hint=f"the last steps that it entered are {last}; does a loop lack an exit?",
        )

    def _carry_out(self, running: Running, command: Command) -> None:
        match command:
            case InvokeTask(scope_id=scope_id, wait_id=wait_id):
                scope = running.execution.scopes.get(scope_id)
                if scope is not None and scope.wait_id == wait_id and scope.wait is WaitKind.TASK:
                    flow = running.source.flow
                    step = flow.lists[scope.list_id].steps[scope.step_index]
                    assert isinstance(step, TaskStep), "only a task makes a call"
                    self._call(running, command, step, path_of(flow, running.execution, scope))
            case ReportCallback(token, result):
                self._report(token, 0, result)
            case StopSubFlow(wait_id):
                self._stop_owned(running, str(wait_id))
            case StopInvocation(None):
                self._stop_owned(running, None)
            case _:
                pass  # what is dropped or stopped here is a message that will find its wait over

    def _call(self, running: Running, command: InvokeTask, step: TaskStep, path: str) -> None:
        ordered = Ordered(running.source, running.execution, step, command, path, self._now_ms)
        answer = self._calls.answer(ordered)
        if answer.crash is Crash.BEFORE:
            self._later(running, self._now_ms, answer.crash)
            return
        is_new = self._is_new(command, answer)
        if is_new:
            call = Call(path, command.step_name, command.target, ordered.input, command.idempotency_key)
            self.record.calls.append(call)
        if answer.crash is Crash.AFTER:
            self._later(running, self._now_ms + answer.reply_after_ms, answer.crash)
        elif answer.reply is not None:
            message = TaskReplied(command.scope_id, command.wait_id, answer.reply)
            self._later(running, self._now_ms + answer.reply_after_ms, message)
        if is_new:
            self._follow(command, answer)

    def _is_new(self, command: InvokeTask, answer: Answer) -> bool:
        """Whether the call does not only submit work again that is submitted already."""
        if answer.child is None and (not command.asynchronous or isinstance(answer.reply, Failure)):
            return True
        is_new = command.submission_key not in self._submitted
        self._submitted.add(command.submission_key)
        return is_new

    def _follow(self, command: InvokeTask, answer: Answer) -> None:
        """Order what a call leads to beside its answer: reports, and a sub-flow."""
        if answer.report is not None and command.token is not None:
            self._report(command.token, answer.report_after_ms, answer.report)
            if answer.again_after_ms is not None:
                self._report(command.token, answer.again_after_ms, answer.report)
        if answer.child is not None:
            child = answer.child
            opened = self._open(child.source, child.flow_name, child.name, child.input, child.callback_token)
            opened.is_owned = command.child_lifecycle != "independent"
            self._later(opened, self._now_ms, Start())

    def _stop_owned(self, parent: Running, wait_id: str | None) -> None:
        """Stop the sub-flow that the wait owns, or all that the execution owns."""
        for running in self._by_id.values():
            execution_id, *_, wait = (running.execution.callback_token or "/").split("/")
            is_meant = execution_id == parent.execution.execution_id and wait and wait_id in (None, wait)
            if is_meant and running.is_owned:
                self._later(running, self._now_ms, NOT_AWAITED)

    def _crash(self) -> None:
        """Lose the calls that are under way, and go on with what was committed."""
        self._due = [each for each in self._due if not isinstance(each[4], TaskReplied)]
        heapq.heapify(self._due)
        for running in self._by_id.values():
            if not running.execution.is_running:
                continue
            running.execution = reloaded(running.execution)
            for scope in running.execution.scopes.values():
                if scope.wait is WaitKind.TASK:
                    self._later(running, self._now_ms, RetryLostCall(scope.scope_id, scope.wait_id, scope.attempt))
        self.record.execution = self._root.execution

    def _report(self, token: str, after_ms: int, result: Result) -> None:
        execution_id, scope_id, entered_event_id, wait_id = token.split("/")
        wait = int(wait_id) if wait_id else None
        message = TaskReported(int(scope_id), int(entered_event_id), wait, result)
        self._later(self._by_id[execution_id], self._now_ms + after_ms, message)

    def _later(self, running: Running, due_ms: int, message: Message | Crash) -> None:
        order = -1 if message is Crash.BEFORE else isinstance(message, (TimerFired, DeadlineReached))
        heapq.heappush(self._due, (due_ms, order, next(self._numbers), running, message))


def _token_for(execution_id: str, scope_id: int, entered_event_id: int, wait_id: int | None) -> str:
    return f"{execution_id}/{scope_id}/{entered_event_id}/{'' if wait_id is None else wait_id}"


def _is_awaited(execution: Execution, message: Message, due_ms: int) -> bool:
    """Whether the message can have an effect, so that the clock has to go to its instant."""
    if not execution.is_running:
        return False
    if isinstance(message, TimerFired):
        scope = execution.scopes.get(message.scope_id)
        return scope is not None and scope.wait_id == message.wait_id and scope.wake_at == due_ms
    if isinstance(message, TaskReplied):
        scope = execution.scopes.get(message.scope_id)
        return scope is not None and scope.wait_id == message.wait_id
    return True
