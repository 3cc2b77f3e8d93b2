"""Runs one case against the machine under every disorder that a real server may meet.

Messages come in random order, twice, too early and too late; calls are lost with their node and made again; commits
are lost and their messages told again; between turns the execution is dropped and read back from its rows. Each turn
is checked for what must always hold, and the end is compared with what the reference says.
"""

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

from flowserver.language.graph import FunctionTarget
from flowserver.machine.advance import advance
from flowserver.machine.commands import CancelInvocation, Command, InvokeTask, SubmitInvocation
from flowserver.machine.events import EventType
from flowserver.machine.mappings import Environment
from flowserver.machine.messages import (
    Continue,
    DeadlineReached,
    Failure,
    Message,
    Redeliver,
    Result,
    Start,
    Stop,
    Success,
    TaskReplied,
    TaskReported,
    TimerFired,
)
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.machine.turn import OutcomeKind, Turn
from tests.simulation.case import NOW_MS, TOKEN_CHARACTERS, Case
from tests.simulation.functions import Answer, event_text
from tests.simulation.reference import FORGOTTEN, Call
from tests.support.invariants import Watch
from tests.support.world import callee_of

TURNS_MAX = 20_000
RECENT = 3
"""How many of the last messages make up most of the duplicates."""

WaitKey = tuple[int, int]
"""(scope_id, wait_id): one attempt of one task."""


@dataclass(frozen=True)
class Disorder:
    """How often, per turn, something goes wrong."""

    crash: float = 0.1
    lost_commit: float = 0.1
    duplicate: float = 0.15
    premature: float = 0.1
    lost_call: float = 0.5
    """Per call under way, in a crash."""
    deep_check: float = 0.2
    interruption: float = 0.05
    """Per execution: that it is stopped or its time runs out."""


class Simulation:
    """One case under way."""

    def __init__(self, case: Case, disorder: Disorder | None = None) -> None:
        self.case = case
        self.log: list[tuple[Message, Turn]] = []
        self.execution = Execution(f"x{case.number}", "sim", f"run{case.number}", case.input, 0, 0)
        self._disorder = disorder or Disorder()
        self._random = Random(f"{case.seed}+{case.number}")
        self._watch = Watch()
        self._now_ms = NOW_MS
        self._more = False
        self._inbox: list[Message] = []
        self._spent: list[Message] = []
        self._attempts: dict[str, list[int]] = {}
        self._silent: set[WaitKey] = set()
        self._calls: Counter[Call] = Counter()

    def run(self) -> None:
        """Play to the end and compare; raises AssertionError with what is wrong."""
        if self.play():
            self._compare()

    def play(self) -> bool:
        """Play to the end; False if the execution was ended from outside."""
        interrupted_at = self._random.randint(1, 10) if self._chance(self._disorder.interruption) else 0
        self._tell(Start())
        while self.execution.is_running:
            assert len(self.log) < TURNS_MAX, "the execution does not end"
            if len(self.log) == interrupted_at:
                self._interrupt()
                return False
            self._disturb()
            self._tell(self._choose())
        for message in self._inbox:
            assert self._tell(message).outcome.kind is OutcomeKind.ENDED
        return True

    # Messages

    def _tell(self, message: Message) -> Turn:
        environment = Environment(self._now_ms, self.case.limits, self.case.missing_source, _token)
        lost: Turn | None = None
        if self._chance(self._disorder.lost_commit):
            lost = advance(self.case.flow, self._watch.reloaded(self.execution), message, environment)
        turn = advance(self.case.flow, self.execution, message, environment)
        self.log.append((message, turn))
        if lost is not None:
            assert (lost.events, lost.commands, lost.outcome) == (turn.events, turn.commands, turn.outcome)
            assert (lost.touched, lost.removed, lost.more) == (turn.touched, turn.removed, turn.more)
        self._watch.check(self.execution, turn, deeply=self._chance(self._disorder.deep_check))
        self._more = turn.more
        for command in turn.commands:
            self._carry_out(command)
        return turn

    def _choose(self) -> Message:
        """The next message, whichever of those that may come; the clock moves on if it has to."""
        timers = self._timers()
        waiting = len(self._inbox)
        choices = waiting + len(timers) + self._more
        assert choices, "the execution is stuck"
        chosen = self._random.randrange(choices)
        if chosen < waiting:
            message = self._inbox.pop(chosen)
        elif chosen < waiting + len(timers):
            wake_at, message = timers[chosen - waiting]
            self._now_ms = max(self._now_ms, wake_at)
        else:
            return Continue()
        self._spent.append(message)
        return message

    def _timers(self) -> list[tuple[int, Message]]:
        """Pauses, and the time limits of attempts that never get a word."""
        return [
            (scope.wake_at, TimerFired(scope.scope_id, scope.wait_id))
            for scope in self.execution.scopes.values()
            if scope.wake_at is not None and self._may_fire(scope)
        ]

    def _may_fire(self, scope: Scope) -> bool:
        return scope.wait is WaitKind.TIMER or (scope.scope_id, scope.wait_id) in self._silent

    # Disorder

    def _disturb(self) -> None:
        if self._chance(self._disorder.crash):
            self._crash()
        if self._spent and self._chance(self._disorder.duplicate):
            message = self._random.choice(self._spent[-RECENT:] if self._chance(0.7) else self._spent)
            if not self._counts_again(message):
                assert self._tell(message).outcome.kind is not OutcomeKind.APPLIED
        if self._chance(self._disorder.premature):
            self._fire_too_early()

    def _crash(self) -> None:
        """The process dies: the execution is read back, and calls under way may be gone."""
        self.execution = self._watch.reloaded(self.execution)
        for scope in self.execution.scopes.values():
            if scope.wait is WaitKind.TASK and self._chance(self._disorder.lost_call):
                self._lose_call((scope.scope_id, scope.wait_id))
                self._inbox.append(Redeliver(scope.scope_id, scope.wait_id, scope.attempt))

    def _lose_call(self, key: WaitKey) -> None:
        self._inbox = [each for each in self._inbox if not (isinstance(each, TaskReplied) and _key(each) == key)]

    def _counts_again(self, message: Message) -> bool:
        """Whether a copy of a report may be taken: a token stands for all attempts of its entry of the step."""
        if not isinstance(message, TaskReported) or message.wait_id is not None:
            return False
        scope = self.execution.scopes.get(message.scope_id)
        if scope is None or scope.wait is WaitKind.TIMER:
            return False
        return scope.entered_event_id == message.entered_event_id

    def _fire_too_early(self) -> None:
        early: list[Message] = [DeadlineReached()] if self.execution.deadline_at > self._now_ms else []
        early += [
            TimerFired(scope.scope_id, scope.wait_id)
            for scope in self.execution.scopes.values()
            if scope.wake_at is None or scope.wake_at > self._now_ms
        ]
        if early:
            assert self._tell(self._random.choice(early)).outcome.kind is OutcomeKind.STALE

    def _interrupt(self) -> None:
        """Stop the execution, or let its time run out: whatever it does then, it ends so."""
        if self._chance(0.5):
            self._tell(Stop("Enough"))
            assert self.execution.status is Status.STOPPED
        else:
            self._now_ms = max(self._now_ms, self.execution.deadline_at)
            self._tell(DeadlineReached())
            assert self.execution.status is Status.TIMED_OUT

    # The world

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, InvokeTask):
            self._call(command)
        elif isinstance(command, SubmitInvocation):
            self._calls[command.target.function, event_text(command.event), FORGOTTEN] += 1
        elif isinstance(command, CancelInvocation) and self._chance(0.5):
            self._lose_call((command.scope_id, command.wait_id))

    def _call(self, call: InvokeTask) -> None:
        attempts = self._attempts.setdefault(call.idempotency_key, [])
        is_new = call.wait_id not in attempts
        if is_new:
            attempts.append(call.wait_id)
        retry = attempts.index(call.wait_id)
        callee = callee_of(call.target)
        event = call.input if isinstance(call.target, FunctionTarget) or call.params is None else call.params
        self._calls[callee, event_text(event), retry] += is_new
        self._answer(call, self.case.functions.answer(callee, event, retry), is_new=is_new)

    def _answer(self, call: InvokeTask, answer: Answer, *, is_new: bool) -> None:
        key = (call.scope_id, call.wait_id)
        if answer.is_silent:
            self._silent.add(key)
        if call.token is None:
            if not answer.is_silent:
                self._inbox.append(TaskReplied(*key, _result(answer)))
        elif answer.raises is not None and answer.at_submission:
            self._inbox.append(TaskReplied(*key, _result(answer)))
        else:
            submitted: Result = Success({"ok": 1}) if self._chance(0.8) else Failure("FnF.InvalidLocal")
            self._inbox.append(TaskReplied(*key, submitted))
            if is_new and not answer.is_silent:
                self._inbox.append(_report(call.token, _result(answer)))

    # The end

    def _compare(self) -> None:
        execution, expected = self.execution, self.case.expected
        if expected.output is None:
            assert execution.status is Status.FAILED, f"expected one of {expected.problems}"
            causes = {cause for error, cause in expected.problems if error == execution.error}
            assert causes & {None, execution.cause}, f"expected one of {expected.problems}"
            return
        assert (execution.status, execution.output) == (Status.SUCCEEDED, expected.output)
        entered = (event for _, turn in self.log for event in turn.events if event.type is EventType.STEP_ENTERED)
        assert Counter(event.step_name for event in entered) == expected.entered
        assert self._calls == expected.calls

    def _chance(self, share: float) -> bool:
        return self._random.random() < share


def _token(_: str, scope_id: int, entered_event_id: int, wait_id: int | None) -> str:
    return f"{scope_id}-{entered_event_id}-{wait_id or 0}".ljust(TOKEN_CHARACTERS, ".")


def _report(token: str, result: Result) -> TaskReported:
    scope_id, entered_event_id, wait_id = (int(part) for part in token.rstrip(".").split("-"))
    return TaskReported(scope_id, entered_event_id, wait_id or None, result)


def _key(message: TaskReplied) -> WaitKey:
    return message.scope_id, message.wait_id


def _result(answer: Answer) -> Result:
    if answer.raises is not None:
        return Failure(answer.raises, answer.cause)
    if not isinstance(answer.returns, dict):
        return Failure("FnF.InvalidLocal", "not an object")
    return Success(answer.returns)


EAGER = replace(Disorder(), deep_check=1.0, lost_commit=1.0)
"""Every turn is made twice and compared in full."""
