"""The calls of a run and their answers: what a mock's reply means for each kind of target and pattern."""

from dataclasses import dataclass, replace
from typing import Final, Protocol

from flowserver.base.json_values import InvalidJson, JsonObject, load_json_object
from flowserver.flowtests.budget import Budget
from flowserver.flowtests.cases import Case, Crash, Mock, Reply, Source, TestFile
from flowserver.flowtests.file_names import flow_name_of
from flowserver.flowtests.findings import CaseStopped, Finding
from flowserver.flowtests.mocks import CaseMocks, Supply, kind_of
from flowserver.flowtests.real_calls import REAL_CALL_SECONDS, Callee, RealCall
from flowserver.flowtests.resource_names import title_of
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    Span,
    TaskStep,
    TopicTarget,
)
from flowserver.language.targets import EXECUTION_NAME, FLOW_NAME
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.sent_messages import reply_of
from flowserver.machine.service_params import child_input, failure_of_action
from flowserver.machine.state import Execution
from flowserver.machine.sub_flow_reply import reply_to_start

SUBMITTED: Final = Success({})
"""The answer to a call that only submits work."""

_MD5: Final = "0" * 32


class Ordered:
    """A call that a step has ordered; `flow_name` is that of the sub-flow it starts, `input` what the callee gets."""

    def __init__(
        self, source: Source, execution: Execution, step: TaskStep, command: InvokeTask, path: str, now_ms: int
    ) -> None:
        self.source = source
        self.execution = execution
        self.now_ms = now_ms
        self.step = step
        self.command = command
        self.path = path
        self.flow_name = _started_flow(command)
        self.input = _input_of(command, self.flow_name)

    @property
    def span(self) -> Span:
        """The step in the definition."""
        return self.step.span


@dataclass(frozen=True, slots=True)
class Child:
    """A sub-flow that runs."""

    source: Source
    flow_name: str
    name: str
    input: JsonObject
    callback_token: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes of a call: its own answer, and the report for which its step may wait; instants count from now."""

    reply: Result | None = None
    reply_after_ms: int = 0
    report: Result | None = None
    report_after_ms: int = 0
    child: Child | None = None
    again_after_ms: int | None = None
    """When the same report comes a second time."""
    crash: Crash | None = None


class Calls(Protocol):
    """Answers the calls of one run."""

    def answer(self, ordered: Ordered) -> Answer:
        """The answer; raises CaseStopped if there is none."""


class MockedCalls:
    """Answers the calls of one run."""

    def __init__(self, file: TestFile, case: Case, budget: Budget, mocks: CaseMocks | None = None) -> None:
        self._file = file
        self._case = case
        self._budget = budget
        self.mocks = CaseMocks(file, case) if mocks is None else mocks

    def answer(self, ordered: Ordered) -> Answer:
        """The answer; raises CaseStopped if no mock has one, and BudgetSpent."""
        command = ordered.command
        self._budget.spend_on_names(len(self.mocks))
        waits = command.pattern is Pattern.WAIT_FOR_CALLBACK
        supply = self.mocks.for_call(command.target, ordered.flow_name, ordered.path, command.step_name)
        callback = self.mocks.for_callback(ordered.path, command.step_name) if waits else None
        if supply is None and callback is None:
            raise CaseStopped(self._unmocked(ordered))
        if supply is not None and supply.mock.real is not None:
            return self._run(ordered, supply.mock.real, callback)
        if supply is None:
            return self._reported(ordered, Answer(_default(ordered)), callback)
        reply = self._take(supply, ordered)
        if reply.crash is Crash.BEFORE:
            return Answer(crash=reply.crash)
        if waits:
            result = None if reply.is_never else reply.result or _default(ordered)
            answer = Answer(result, reply.after_ms, crash=reply.crash)
            return answer if isinstance(result, Failure) else self._reported(ordered, answer, callback)
        if reply.is_never:
            answer = Answer(SUBMITTED if command.token is not None or command.asynchronous else None)
        else:
            answer = _replied(ordered, reply)
        return replace(answer, crash=reply.crash)

    def _reported(self, ordered: Ordered, answer: Answer, callback: Supply | None) -> Answer:
        """The answer with the report that the step waits for."""
        if callback is None:
            raise CaseStopped(self._unreported(ordered))
        report = self._take(callback, ordered)
        if report.is_never:
            return answer
        again_ms = None if report.again_ms is None else report.after_ms + report.again_ms
        result = report.result or SUBMITTED
        return replace(answer, report=result, report_after_ms=report.after_ms, again_after_ms=again_ms)

    def _run(self, ordered: Ordered, source: Source, callback: Supply | None) -> Answer:
        command = ordered.command
        params = command.params or {}
        try:
            given = load_json_object(child_input(params, command.input))
        except InvalidJson as error:
            return Answer(Failure("FnF.InvalidArgument", str(error)))
        name = params.get(EXECUTION_NAME) or command.submission_key
        token = command.token if command.pattern is Pattern.SYNC else None
        flow_name = ordered.flow_name or flow_name_of(source.file)
        child = Child(source, flow_name, str(name), given, token)
        answer = Answer(_default(ordered, source.text), child=child)
        return answer if command.pattern is not Pattern.WAIT_FOR_CALLBACK else self._reported(ordered, answer, callback)

    def _take(self, supply: Supply, ordered: Ordered) -> Reply:
        if supply.mock.callee is not None:
            supply.taken += 1
            return _really(supply.mock.callee, supply.mock, ordered)
        reply = supply.take()
        if reply is not None:
            return reply
        message = f"the mock `{supply.mock.key}` has no more replies: step {ordered.path} makes call {supply.taken + 1}"
        hint = "add a reply, or give the last one `always: true`"
        raise CaseStopped(
            Finding(message, self._file.place(supply.mock.span), ordered.source.place(ordered.span), hint)
        )

    def _unmocked(self, ordered: Ordered) -> Finding:
        target = ordered.command.target
        kind, key = kind_of(target), title_of(target)
        if ordered.flow_name is not None:
            key = ordered.flow_name
        elif isinstance(target, (QueueTarget, TopicTarget)):
            key = key.rpartition("/")[2]
        message = f"step {ordered.path} calls {shown(key)}, which has no mock"
        hint = f"add `{kind}: {{{key}: [{{return: {{}}}}]}}` to the test or the file"
        return Finding(message, self._file.place(self._case.span), ordered.source.place(ordered.span), hint)

    def _unreported(self, ordered: Ordered) -> Finding:
        message = f"step {ordered.path} waits for a callback, and the test has none"
        hint = f"add `callbacks: {{{ordered.path}: [{{succeed: {{}}}}]}}`, or `{{never: true}}` if none comes"
        return Finding(message, self._file.place(self._case.span), ordered.source.place(ordered.span), hint)


def _really(callee: Callee, mock: Mock, ordered: Ordered) -> Reply:
    """What a real call comes to. What takes a message from a queue or a topic answers the sender nothing."""
    command, execution = ordered.command, ordered.execution
    left = REAL_CALL_SECONDS
    if command.deadline_at is not None:
        left = min(left, max(1, (command.deadline_at - ordered.now_ms) // 1000))
    is_sent = isinstance(command.target, (QueueTarget, TopicTarget))
    call = RealCall(command, ordered.input, execution.flow_name, execution.name, left, wants_result=not is_sent)
    result = callee(call)
    return Reply(mock.span, None if is_sent and isinstance(result, Success) else result, mock.after_ms)


def _replied(ordered: Ordered, reply: Reply) -> Answer:
    """The answer of a step that waits for no callback: a submission is answered at once, its end reported later."""
    command = ordered.command
    result = reply.result or _default(ordered)
    if command.token is not None:
        return Answer(SUBMITTED, 0, reply.result or SUBMITTED, reply.after_ms)
    if command.asynchronous:
        return Answer(SUBMITTED)
    if isinstance(result, Failure) and isinstance(command.target, ActionTarget):
        result = failure_of_action(result, command.target.service)
    return Answer(result, reply.after_ms)


def _started_flow(command: InvokeTask) -> str | None:
    match command.target:
        case FlowTarget(_, flow_name):
            return flow_name
        case ActionTarget(_, "fnf", _):
            return str((command.params or {}).get(FLOW_NAME))
        case _:
            return None


def _input_of(command: InvokeTask, flow_name: str | None) -> JsonObject:
    if flow_name is not None:
        try:
            return load_json_object(child_input(command.params, command.input))
        except InvalidJson:
            return command.params or {}
    if isinstance(command.target, FunctionTarget) or command.params is None:
        return command.input
    return command.params


def _default(ordered: Ordered, definition: str = "") -> Success:
    """What the service answers."""
    command = ordered.command
    if isinstance(command.target, (QueueTarget, TopicTarget)):
        return Success(reply_of(command, _MD5))
    if ordered.flow_name is not None:
        params = command.params or {}
        name = params.get(EXECUTION_NAME) or command.submission_key
        text = child_input(params, command.input)
        return Success(
            reply_to_start(command.submission_key, ordered.flow_name, definition, str(name), text, ordered.now_ms)
        )
    return SUBMITTED
