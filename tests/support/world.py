"""A world for the machine: scripted functions, a clock that jumps, and a record of all events.

`run` runs an execution to its end in virtual time. Tests of single messages leave functions unscripted, so that calls
stay open, and answer them step by step. Every turn is checked against the invariants, and made twice: equal arguments
give an equal turn.
"""

import heapq
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import count

from msgspec.structs import replace

from flowserver.base.json_values import JsonObject, dump_json, load_json
from flowserver.base.limits import Limits
from flowserver.language.graph import ActionTarget, Flow, FlowTarget, FunctionTarget, QueueTarget, Target, TopicTarget
from flowserver.machine.advance import advance
from flowserver.machine.commands import Command, InvokeTask, StopInvocation
from flowserver.machine.events import Event, EventType, whole_detail
from flowserver.machine.mappings import Environment, MissingSource
from flowserver.machine.messages import (
    Continue,
    DeadlineReached,
    Failure,
    Message,
    Redrive,
    Result,
    RetryLostCall,
    Start,
    Success,
    TaskReplied,
    TaskReported,
    TimerFired,
)
from flowserver.machine.retry_and_catch import INVALID_LOCAL
from flowserver.machine.state import Execution, Scope, WaitKind
from flowserver.machine.turn import OutcomeKind, Turn
from tests.conformance.cases import Reply
from tests.support.invariants import Watch

NOW_MS = 1_700_000_000_000
"""The instant at which every world begins: 2023-11-14T22:13:20Z."""

ECHO = "echo"
SUBMITTED = Success({})


def token_for(_: str, scope_id: int, entered_event_id: int, wait_id: int | None) -> str:
    """Task tokens that contain the ids of their wait."""
    wait = "" if wait_id is None else f"-{wait_id}"
    return f"token-{scope_id}-{entered_event_id}{wait}"


def callee_of(target: Target) -> str:
    """The name under which a target's answers are scripted."""
    match target:
        case FunctionTarget():
            return target.function
        case FlowTarget():
            return target.flow_name
        case QueueTarget():
            return target.queue
        case TopicTarget():
            return target.topic
        case ActionTarget():
            return target.action


def whole(event: Event) -> Event:
    """The event with its parts inserted, as readers see it."""
    if not event.parts:
        return event
    return replace(event, detail=dump_json(whole_detail(event)), parts=())


class World:
    """One execution and its environment."""

    def __init__(
        self,
        flow: Flow,
        *,
        input: JsonObject | None = None,
        replies: Mapping[str, Sequence[Reply]] | None = None,
        limits: Limits | None = None,
        missing_source: MissingSource = "null",
        callback_token: str | None = None,
        waits_for_redrive: bool = False,
    ) -> None:
        self.flow = flow
        self.execution = Execution("id1", "conf", "exec1", input or {}, 0, 0, callback_token=callback_token)
        self.execution.waiting_steps = 0 if waits_for_redrive else None
        self.now_ms = NOW_MS
        self.limits = limits or Limits()
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.received: dict[str, list[JsonObject]] = {}
        self.pauses_seconds: list[float] = []
        self.more = False
        self._missing_source = missing_source
        self._replies = {name: list(script) for name, script in (replies or {}).items()}
        self._due: list[tuple[int, int, Message]] = []
        self._numbers = count()
        self._watch = Watch()
        self._paused: set[int] = set()

    # The record

    @property
    def entered(self) -> list[str]:
        """The names of the entered steps, in order."""
        return [event.step_name for event in self.events if event.type is EventType.STEP_ENTERED]

    @property
    def calls(self) -> list[InvokeTask]:
        """The ordered calls, in order."""
        return [command for command in self.commands if isinstance(command, InvokeTask)]

    @property
    def stopped(self) -> list[str | None]:
        """The stopped asynchronous invocations, in order; None means all."""
        return [command.submission_key for command in self.commands if isinstance(command, StopInvocation)]

    @property
    def scope(self) -> Scope:
        """The scope of the flow's own list."""
        return self.execution.scopes[1]

    def event(self, type: EventType) -> JsonObject:
        """The detail of the only event of a type."""
        (detail,) = self.details(type)
        return detail

    def details(self, type: EventType) -> list[JsonObject]:
        """The details of all events of a type."""
        return [load_json(event.detail) for event in self.events if event.type is type]

    # Actions

    def tell(self, message: Message) -> Turn:
        """Deliver a message to the execution and carry out the turn's commands."""
        environment = Environment(self.now_ms, self.limits, self._missing_source, token_for)
        twin = deepcopy(self.execution)
        again = advance(self.flow, twin, message, environment)
        turn = advance(self.flow, self.execution, message, environment)
        assert (turn.events, turn.commands, turn.outcome) == (again.events, again.commands, again.outcome)
        assert (turn.touched, turn.removed, self.execution) == (again.touched, again.removed, twin)
        self._watch.check(self.execution, turn)
        self.more = turn.more
        self.events += map(whole, turn.events)
        for command in turn.commands:
            self._carry_out(command)
        self._note_pauses(turn)
        for scope_id in turn.wanted:
            self._watch.load_finished(self.execution, scope_id)
        return turn

    def start(self) -> Turn:
        """Begin the execution."""
        return self.tell(Start())

    def run(self) -> Execution:
        """Run the execution until it ends, or until nothing is left that can happen."""
        self.start()
        return self.go_on()

    def redrive(self, message: Redrive | None = None) -> Turn:
        """Redrive the execution with the state it has kept, or with the steps that wait for a redrive."""
        if not self.execution.is_running:
            self._due.clear()
            self._watch.redrive(self.execution)
        return self.tell(message or Redrive())

    def go_on(self, turns: int | None = None) -> Execution:
        """Continue until the execution ends, or for `turns` turns."""
        while self.execution.is_running and turns != 0 and (message := self._next()):
            self.tell(message)
            turns = None if turns is None else turns - 1
        return self.execution

    def reply(self, result: Result, call: InvokeTask | None = None) -> Turn:
        """Answer a call; the last one, unless another is given."""
        call = call or self.calls[-1]
        return self.tell(TaskReplied(call.scope_id, call.wait_id, result))

    def report(self, result: Result, token: str | None = None) -> Turn:
        """Report with a task token; that of the last call, unless another is given."""
        return self.tell(self._reported(token or self.calls[-1].token or "", result))

    def wake(self) -> Turn:
        """Let the next timer fire, at its instant."""
        wake_at, message = self._timers()[0]
        self.now_ms = max(self.now_ms, wake_at)
        return self.tell(message)

    def lose_call(self, call: InvokeTask | None = None) -> Turn:
        """The node that makes a call dies."""
        call = call or self.calls[-1]
        return self.tell(RetryLostCall(call.scope_id, call.wait_id, call.attempt))

    def reload(self) -> None:
        """Continue as if the execution had been loaded."""
        self._watch.forget_finished(self.execution)

    def ignores(self, message: Message, kind: OutcomeKind = OutcomeKind.STALE) -> bool:
        """Whether the message changes nothing and is answered so."""
        before = deepcopy(self.execution)
        return self.tell(message).outcome.kind is kind and self.execution == before

    # Implementation

    def _next(self) -> Message | None:
        """The next event; the clock has moved to it. An answer comes before a timer of the same instant."""
        if self.more:
            return Continue()
        timer = self._timers()[0]
        if self._due and self._due[0][0] <= timer[0]:
            due_at, _, message = heapq.heappop(self._due)
        else:
            due_at, message = timer
        if isinstance(message, DeadlineReached) and self.execution.deadline_at - self.now_ms > 10**10:
            return None  # only the execution's default deadline, a year ahead, is left
        self.now_ms = max(self.now_ms, due_at)
        return message

    def _timers(self) -> list[tuple[int, Message]]:
        timers: list[tuple[int, Message]] = [
            (scope.wake_at, TimerFired(scope.scope_id, scope.wait_id))
            for scope in self.execution.scopes.values()
            if scope.wake_at is not None
        ]
        return sorted([*timers, (self.execution.deadline_at, DeadlineReached())], key=lambda timer: timer[0])

    def _carry_out(self, command: Command) -> None:
        self.commands.append(command)
        if isinstance(command, InvokeTask):
            self._call(command)

    def _call(self, call: InvokeTask) -> None:
        callee = callee_of(call.target)
        event = call.input if isinstance(call.target, FunctionTarget) or call.params is None else call.params
        self.received.setdefault(callee, []).append(event)
        script = self._replies.get(callee, [Reply(returns=event)] if callee == ECHO else [])
        if not script:
            return
        reply = script.pop(0) if len(script) > 1 else script[0]
        if call.token is not None or call.asynchronous:
            self._later(0, TaskReplied(call.scope_id, call.wait_id, SUBMITTED))
        else:
            self._later(reply.after_seconds, TaskReplied(call.scope_id, call.wait_id, _result(reply)))
        if call.token is not None:
            self._later(reply.after_seconds, self._reported(call.token, _result(reply)))

    def _later(self, seconds: int, message: Message) -> None:
        heapq.heappush(self._due, (self.now_ms + seconds * 1000, next(self._numbers), message))

    def _reported(self, token: str, result: Result) -> TaskReported:
        _, scope_id, entered_event_id, *wait_id = token.split("-")
        return TaskReported(int(scope_id), int(entered_event_id), int(wait_id[0]) if wait_id else None, result)

    def _note_pauses(self, turn: Turn) -> None:
        for scope_id in sorted(turn.touched):
            scope = self.execution.scopes[scope_id]
            if scope.wait is WaitKind.TIMER and scope.wait_id not in self._paused:
                assert scope.wake_at is not None
                self._paused.add(scope.wait_id)
                self.pauses_seconds.append((scope.wake_at - self.now_ms) / 1000)


def _result(reply: Reply) -> Result:
    """The result of a function's answer: a result that is not an object is an error of the function."""
    if reply.raises is not None:
        return Failure(reply.raises, reply.cause)
    return Success(reply.returns) if isinstance(reply.returns, dict) else Failure(INVALID_LOCAL, "not an object")


def trace(events: Sequence[Event]) -> list[str]:
    """Events as lines: id, cause, step (`-` for the execution), type, detail."""
    return [
        f"{event.event_id} {event.schedule_event_id} {event.step_name or '-'} {event.type} {event.detail}"
        for event in events
    ]


def lines(text: str) -> list[str]:
    """The lines of an expected trace, regardless of column alignment."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]
