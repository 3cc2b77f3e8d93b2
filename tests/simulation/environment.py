"""Everything outside the server: functions that are called, people with task tokens, clients that start and stop.

A client repeats a request until it is answered, possibly by the other node.
"""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from msgspec.structs import replace
from sqlalchemy import Connection

from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.batch_items import Envelope, Receipt
from flowserver.engine.context import EngineContext
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.engine.executions.starting import Starter
from flowserver.engine.executions.step_calls import StepCalls
from flowserver.engine.functions.call_slots import CallSlots
from flowserver.language.graph import Pattern
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.messages import Failure, Result, Start, Stop, Success, TaskReplied, TaskReported
from flowserver.machine.state import Status, WaitKind
from flowserver.store.executions.due import TaskKey
from flowserver.store.executions.new_executions import NewExecution
from tests.simulation.case import Case
from tests.simulation.fault_rates import FaultRates
from tests.simulation.functions import Answer
from tests.simulation.node import InboxItem, Node
from tests.simulation.redrives import Redrives
from tests.simulation.reference import STARTED
from tests.simulation.shared_database import SharedDatabase
from tests.simulation.witness import Attempt, Run, Witness
from tests.support.clock import ManualClock


@dataclass(slots=True, eq=False)
class Request:
    """A request of a client. `make` is called at every try, and returns None once the request is pointless."""

    make: Callable[[], InboxItem | None]
    is_start: bool = False
    is_redrive: bool = False


class Environment:
    """The functions and clients of a world."""

    def __init__(
        self,
        witness: Witness,
        clock: ManualClock,
        limits: Limits,
        tokens: TaskTokens,
        random: Random,
        fault_rates: FaultRates,
        redrives: Redrives,
    ) -> None:
        self._witness = witness
        self._tokens = tokens
        self._random = random
        self._fault_rates = fault_rates
        self._clock = clock
        self._limits = limits
        self._redrives = redrives
        self.requests: list[Request] = []

    # Clients

    def start(self, case: Case) -> None:
        """A client starts the case's execution, once."""
        tries = 0

        def make() -> InboxItem:
            nonlocal tries
            tries += 1
            execution_id = f"x{case.number}.{tries}"
            self._witness.cases[execution_id] = case
            is_unique = tries == 1 and self._chance(0.5)
            text = dump_json(case.input)
            name = case.execution_name
            new = NewExecution(execution_id, case.flow_name, name, text, case.input, name_is_unique=is_unique)
            return InboxItem(Envelope(execution_id, Start(), new=new))

        self.requests.append(Request(make, is_start=True))

    def stop(self, execution_id: str) -> None:
        """A client stops the execution."""
        self.requests.append(Request(lambda: InboxItem(Envelope(execution_id, Stop("Enough")))))

    def redrive(self, run: Run) -> None:
        """A client redrives an execution that has ended, or waits for a redrive, once."""
        number = run.execution.redrive_count + 1
        token = f"{run.execution.execution_id}.{number}"

        def make() -> InboxItem | None:
            if run.execution.redrive_count > number or run.execution.status is Status.SUCCEEDED:
                return None
            return InboxItem(self._redrives.envelope(run, token))

        self.requests.append(Request(make, is_redrive=True))

    def _report(self, key: TaskKey, token: str, result: Result) -> None:
        """A person reports with a task token. The report is repeated only if it cannot settle a later attempt."""
        claim = self._tokens.read(token)
        assert claim is not None, "a function got a token that the server cannot read"
        message = TaskReported(claim.scope_id, claim.entered_event_id, claim.wait_id, result)
        self.requests.append(Request(lambda: self._report_parcel(key, message)))

    def _report_parcel(self, key: TaskKey, message: TaskReported) -> InboxItem | None:
        """The report, judged again when a batch takes it, because a later attempt may have begun meanwhile."""
        parcel = InboxItem(Envelope(key[0], message))
        parcel.open = lambda: parcel.item if self._is_meant(parcel, key, message) else None
        return parcel if self._is_meant(parcel, key, message) else None

    def _is_meant(self, parcel: InboxItem, key: TaskKey, message: TaskReported) -> bool:
        """Whether the report settles its own attempt, or can change nothing, which is recorded."""
        execution_id, scope_id, wait_id = key
        scope = self._witness.runs[execution_id].execution.scopes.get(scope_id)
        if scope is not None and scope.wait_id == wait_id:
            return True
        parcel.is_harmless = True
        is_same_entry = scope is not None and scope.entered_event_id == message.entered_event_id
        return not is_same_entry or scope is None or scope.wait is WaitKind.TIMER

    # Functions

    def dispatcher(self, lease: Lease) -> Dispatcher:
        """The engine's own dispatcher, which starts a node's sub-flows and pauses for each commit that it waits for."""
        asking, unused = cast(Any, _StepwiseCommitter()), cast(Any, None)
        context = EngineContext(
            *(unused, asking, cast(Any, _Reader(self._redrives.database)), lease, unused),
            *(self._tokens, self._clock, unused, self._limits, unused),
        )
        slots = CallSlots(self._limits, lambda: 1)
        made = StepCalls(context, unused, unused, _UncountedStarter(context), unused, unused, unused)
        return Dispatcher(context, unused, slots, made)

    def call(self, node: Node, caller: Caller, command: InvokeTask) -> InboxItem:
        """A call that the node makes, and its outcome."""
        key = (caller.execution_id, command.scope_id, command.wait_id)
        attempt = self._witness.attempts[key]
        if attempt.is_real_child:
            return self._call_child(node, caller, command, key)
        lease = node.lease.node_id
        parcel = InboxItem(None, call=key, order=node.calls[key])
        parcel.open = lambda: self._call_function(key, command, attempt, lease)
        parcel.lost = lambda: self._reach_by_chance(parcel.open)
        parcel.then = lambda answer: self._replied(node, parcel, answer)
        return parcel

    def _reach_by_chance(self, reach: Callable[[], Any] | None) -> None:
        if reach is not None and self._chance(self._fault_rates.reached):
            reach()

    def _replied(self, node: Node, parcel: InboxItem, answer: Any) -> None:
        """The reply is accepted, or, if the database failed, tried again."""
        if isinstance(answer, Exception):
            node.inbox.append(parcel)
        else:
            node.ended(parcel)

    def _call_function(self, key: TaskKey, command: InvokeTask, attempt: Attempt, lease: str) -> Envelope | None:
        """The function receives the call and answers, at once or by its token."""
        answer, is_first = attempt.answer, not attempt.is_reached
        attempt.is_reached = True
        result: Result = _result(answer)
        if command.token is not None and not (answer.raises is not None and answer.at_submission):
            if is_first and not answer.is_silent:
                self._report(key, command.token, result)
            result = Success({"ok": 1}) if self._chance(0.8) else Failure("FnF.InvalidLocal")
        elif command.asynchronous and command.token is None:
            result = SUBMITTED
        elif answer.is_silent:
            return None
        return Envelope(key[0], TaskReplied(command.scope_id, command.wait_id, result), lease=lease)

    # Sub-flows

    def _call_child(self, node: Node, caller: Caller, command: InvokeTask, key: TaskKey) -> InboxItem:
        """The dispatcher's own way of starting a sub-flow, run step by step from commit to commit."""
        call = node.dispatcher._call(key, (caller, command), cast(Any, _NoSlot()))
        order = InboxItem(None, call=key, order=node.calls[key])
        return self._next(node, order, call, call.send(None), command)

    def _next(
        self, node: Node, order: InboxItem, call: Coroutine[Any, Any, None], envelope: Envelope, command: InvokeTask
    ) -> InboxItem:
        """The next commit that the call waits for."""
        assert order.call is not None
        if envelope.new is not None:
            self._witness.cases[envelope.execution_id] = self._witness.runs[order.call[0]].case
        elif command.pattern is not Pattern.SYNC:
            envelope = _without_ids(envelope)
        parcel = InboxItem(envelope, call=order.call, order=order.order)

        def then(answer: Any) -> None:
            if isinstance(answer, Exception):
                node.inbox.append(parcel)
                return
            try:
                node.inbox.append(self._next(node, order, call, call.send(answer), command))
            except StopIteration:
                node.ended(parcel)

        parcel.then = then
        return parcel

    def _chance(self, share: float) -> bool:
        return self._random.random() < share


SUBMITTED = Success({})
"""The result of a step that does not wait for its invocation."""


class _NoSlot:
    """A call always gets a slot here."""

    def release(self) -> None:
        pass


class _StepwiseCommitter:
    """A committer whose `submit` yields its envelope to the code that drives the coroutine."""

    async def submit(self, envelope: Envelope, *, by_caller: bool = False) -> Receipt:
        return await _NextCommit(envelope)


@dataclass
class _NextCommit:
    envelope: Envelope

    def __await__(self) -> Generator[Envelope, Receipt, Receipt]:
        return (yield self.envelope)


@dataclass
class _Reader:
    """A reader that answers at once."""

    database: SharedDatabase

    async def ask(self, query: Callable[[Connection], Any]) -> Any:
        with self.database.read() as connection:
            return query(connection)


class _UncountedStarter(Starter):
    """Starts sub-flows without counting those that run."""

    async def _has_room(self, running_max: int) -> bool:
        return True


def _without_ids(envelope: Envelope) -> Envelope:
    """The result of starting a sub-flow without waiting, minus the ids that the reference cannot know."""
    message = envelope.message
    if not isinstance(message, TaskReplied) or not isinstance(message.result, Success):
        return envelope
    told = {name: message.result.output[name] for name in STARTED}
    return replace(envelope, message=replace(message, result=Success(told)))


def _result(answer: Answer) -> Result:
    if answer.raises is not None:
        return Failure(answer.raises, answer.cause)
    if not isinstance(answer.returns, dict):
        return Failure("FnF.InvalidLocal", "not an object")
    return Success(answer.returns)
