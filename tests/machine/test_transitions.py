"""The transition table: each row can be taken, nothing else is, and a message without a row is stale."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.advance import HANDLERS
from flowserver.machine.mappings import Environment
from flowserver.machine.messages import (
    Failure,
    Message,
    RetryLostCall,
    ScopeMessage,
    Success,
    TaskReplied,
    TaskReported,
    TimerFired,
)
from flowserver.machine.state import Scope, Status, WaitKind
from flowserver.machine.transitions import FOLLOWING, LEGAL_STATUSES, STATUS_TRANSITIONS, TRANSITIONS, is_current
from flowserver.machine.turn import NOT_NOW, STALE, Turn
from tests.support.flows import flow
from tests.support.world import SUBMITTED, World, token_for

W = WaitKind
Way = tuple[WaitKind, type[Message] | None, WaitKind]

TASK = "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', timeoutSeconds: 9%s}\n"
ASK = TASK % ", pattern: waitForCallback%s"
SUB = "- {type: task, name: t, resourceArn: 'acs:fnf:::flow/child', pattern: sync, timeoutSeconds: 9%s}\n"
REFUSED = (
    "- {type: task, name: t, resourceArn: 'acs:mns:::/queues/jobs/messages', "
    "serviceParams: {MessageBody: $, Priority: $}%s}\n"
)
BROKEN = "- {type: wait, name: b, duration: $.none}\n"
END = "- {type: pass, name: end}\n"
RETRY = ", retry: [{errors: [FnF.ALL], maxAttempts: 2, intervalSeconds: 1}]"
CATCH = ", catch: [{errors: [FnF.ALL], goto: end}]"
FAIL = "{type: fail, name: f, error: Bad}"
WAIT = "{type: wait, name: w, duration: 5}"
LISTS = "- {type: parallel, name: p, branches: [{steps: [%s]}, {steps: [{type: wait, name: v, duration: 9}]}]}\n"
FAILURE, SUCCESS = Failure("Bad", "why"), Success({})

BEGINNINGS: dict[WaitKind, tuple[str, tuple[Callable[[World], object], ...]]] = {
    W.TIMER: (TASK, (lambda world: world.reply(FAILURE),)),
    W.TASK: (TASK, ()),
    W.TOKEN: (ASK, (lambda world: world.reply(SUBMITTED),)),
    W.CHILD: (SUB, (lambda world: world.reply(SUBMITTED),)),
    W.JOIN: (LISTS % WAIT + "%s", ()),
    W.READY: (END + "- {type: pass, name: more}\n%s", ()),
    W.REDRIVE: (TASK.replace("9%s", "9"), (lambda world: world.reply(FAILURE),)),
}
"""By wait kind, a flow, and the events until its own list waits in that way."""


def in_wait(kind: WaitKind, attributes: str = "") -> World:
    steps, happenings = BEGINNINGS[kind]
    limits = Limits(turn_steps_max=1) if kind is W.READY else None
    attributes = attributes if "name: t," in steps else ""
    steps = steps % attributes if "%s" in steps else steps
    world = started(steps + END.replace("end", "last"), limits, waits_for_redrive=kind is W.REDRIVE)
    for happening in happenings:
        happening(world)
    assert world.scope.wait is kind
    return world


def started(steps: str, limits: Limits | None = None, *, waits_for_redrive: bool = False) -> World:
    world = World(flow(steps + END if CATCH in steps else steps), limits=limits, waits_for_redrive=waits_for_redrive)
    world.start()
    return world


def messages_for(scope: Scope, result: Success | Failure = SUCCESS) -> list[ScopeMessage]:
    """Every message type, naming exactly the scope's wait."""
    return [
        TimerFired(scope.scope_id, scope.wait_id),
        TaskReplied(scope.scope_id, scope.wait_id, result),
        TaskReported(scope.scope_id, scope.entered_event_id, None, result),
        RetryLostCall(scope.scope_id, scope.wait_id, scope.attempt),
    ]


def test_every_row_with_a_message_has_its_handler_and_no_two_rows_are_the_same() -> None:
    rows = [(each.source, each.message) for each in TRANSITIONS]
    assert len(set(rows)) == len(rows)
    assert HANDLERS.keys() == {row for row in rows if row[1] is not None}
    assert FOLLOWING.keys() == set(WaitKind)


@pytest.mark.parametrize(("kind", "number"), list(product(BEGINNINGS, range(4))))
def test_a_wait_accepts_the_messages_of_the_table_and_every_other_is_stale(kind: WaitKind, number: int) -> None:
    world = in_wait(kind, RETRY)
    message = messages_for(world.scope)[number]
    world.now_ms = max(world.now_ms, world.scope.wake_at or 0)
    assert (kind, type(message)) not in HANDLERS or is_current(world.scope, message, world.now_ms)
    turn = world.tell(message)
    assert (turn.outcome == STALE) == ((kind, type(message)) not in HANDLERS)


@pytest.mark.parametrize("kind", [W.TIMER, W.TASK, W.TOKEN, W.CHILD])
def test_a_message_that_names_another_wait_is_stale(kind: WaitKind) -> None:
    world = in_wait(kind, RETRY)
    scope = world.scope
    due, wait_id, entered = scope.wake_at or 0, scope.wait_id, scope.entered_event_id
    assert world.ignores(TimerFired(1, wait_id)), "not due"
    world.now_ms = due
    for other in (wait_id - 1, wait_id + 1):
        assert world.ignores(TimerFired(1, other))
        assert world.ignores(TaskReplied(1, other, SUCCESS))
        assert world.ignores(RetryLostCall(1, other, scope.attempt))
        assert world.ignores(TaskReported(1, entered, other, SUCCESS))
    assert world.ignores(RetryLostCall(1, wait_id, scope.attempt + 1))
    assert world.ignores(TaskReported(1, entered + 1, None, SUCCESS))
    assert world.ignores(TimerFired(2, wait_id)), "no such scope"


class Recorder:
    """The transitions that turns make: those that a message makes in the scope that it names, and the turns' own."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ways: set[Way] = set()
        self._changes: list[tuple[int, WaitKind, WaitKind]] = []
        change_wait, make_ready = Turn.change_wait, Turn.make_ready

        def changed(turn: Turn, scope: Scope, kind: WaitKind, wake_at: int | None) -> None:
            self._changes.append((scope.scope_id, scope.wait, kind))
            change_wait(turn, scope, kind, wake_at)

        def made_ready(turn: Turn, scope: Scope) -> None:
            self._changes.append((scope.scope_id, scope.wait, W.READY))
            make_ready(turn, scope)

        patch.setattr(Turn, "change_wait", changed)
        patch.setattr(Turn, "make_ready", made_ready)

    def tell(self, world: World, message: ScopeMessage) -> Turn:
        """Deliver a message to the world, and record its transitions."""
        self.note_own_changes()
        before = world.execution.scopes[message.scope_id].wait
        turn = world.tell(message)
        changes = self._changes[: len(self._changes) // 2]  # a world makes every turn twice
        self._changes = []
        first = next((change for change in changes if change[0] == message.scope_id), None)
        if turn.outcome != STALE:
            self.ways.add((before, type(message), before if first is None else first[2]))
        self._changes = [change for change in changes if change is not first]
        self.note_own_changes()
        return turn

    def note_own_changes(self) -> None:
        """The changes without a message."""
        self.ways.update((source, None, target) for _, source, target in self._changes)
        self._changes = []


def _table() -> Iterator[Way]:
    for each in TRANSITIONS:
        for target in each.targets:
            if each.source is not None and target is not None:
                yield each.source, each.message, target


def test_every_transition_of_the_table_can_be_taken_and_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scopes also begin and end: each is opened READY, and removed when its list is done or the execution ends."""
    recorder = Recorder(monkeypatch)
    attempts = product((W.TASK, W.TOKEN, W.CHILD), (RETRY, CATCH, ""), (SUCCESS, FAILURE), range(4), (False, True))
    for kind, attributes, result, number, waits in attempts:
        steps, happenings = BEGINNINGS[kind]
        world = started(steps % attributes, waits_for_redrive=waits)
        for happening in happenings:
            happening(world)
            recorder._changes.clear()
        world.now_ms = max(world.now_ms, world.scope.wake_at or 0)
        recorder.tell(world, messages_for(world.scope, result)[number])
    for steps in (ASK % "", SUB % ""):
        world = started(steps)
        recorder.tell(world, TaskReplied(1, 1, SUBMITTED))
    for number in range(4):
        world = started(TASK % RETRY)
        recorder.tell(world, TaskReplied(1, 1, FAILURE))
        world.now_ms += 10_000
        recorder.tell(world, messages_for(world.scope)[number])
    for attributes, waits in product((RETRY + CATCH, RETRY), (False, True)):
        world = started(REFUSED % attributes, waits_for_redrive=waits)
        for _ in range(2):
            world.now_ms += 10_000
            recorder.tell(world, TimerFired(1, world.scope.wait_id))
        recorder.note_own_changes()
        if waits and world.execution.is_running:
            world.redrive()
    for steps in (END, "- " + WAIT, "- " + FAIL, LISTS % FAIL, LISTS % WAIT):
        world = started(steps)
        while world.execution.is_running:
            scope = min(world.execution.scopes.values(), key=lambda scope: scope.wake_at or 10**15)
            world.now_ms = scope.wake_at or 0
            recorder.tell(world, TimerFired(scope.scope_id, scope.wait_id))
    for steps in (TASK % "", ASK % "", REFUSED % "", BROKEN):
        world = started(steps, waits_for_redrive=True)
        if world.scope.wait is W.TASK:
            world.reply(FAILURE)
            recorder._changes.clear()
        world.redrive()
        recorder.note_own_changes()
    assert recorder.ways == set(_table())


def test_a_report_during_a_pause_is_refused_and_not_stale() -> None:
    world = in_wait(W.TIMER, RETRY)
    assert world.tell(TaskReported(1, world.scope.entered_event_id, None, SUCCESS)).outcome == NOT_NOW


# The guard


def _turn(world: World) -> Turn:
    return Turn(world.flow, world.execution, Environment(world.now_ms, world.limits, "null", token_for))


@pytest.mark.parametrize(("kind", "target"), list(product(BEGINNINGS, WaitKind)))
def test_a_wait_outside_the_table_is_rejected(kind: WaitKind, target: WaitKind) -> None:
    world = in_wait(kind, RETRY)
    legal = {next for source, _, next in _table() if source is kind}
    if target in legal:
        _turn(world).change_wait(world.scope, target, None)
        assert world.scope.wait is target
    else:
        with pytest.raises(AssertionError, match=f"{target} does not follow {kind}"):
            _turn(world).change_wait(world.scope, target, None)
        assert world.scope.wait is kind


def test_a_list_that_has_failed_is_not_made_ready() -> None:
    world = in_wait(W.TASK)
    turn = _turn(world)
    turn.change_wait(world.scope, W.DONE, None)
    with pytest.raises(AssertionError):
        turn.make_ready(world.scope)


@pytest.mark.parametrize(("source", "target"), list(product(Status, Status)))
def test_an_execution_ends_and_only_a_redrive_lets_it_run_again(source: Status, target: Status) -> None:
    world = in_wait(W.TASK)
    world.execution.status = source
    ends = source is Status.RUNNING and target is not Status.RUNNING
    runs_again = source not in (Status.RUNNING, Status.SUCCEEDED) and target is Status.RUNNING
    assert ((source, target) in LEGAL_STATUSES) == (ends or runs_again)
    if ends:
        _turn(world).end(target, failure=FAILURE)
        assert world.execution.status is target
    elif not runs_again:
        with pytest.raises(AssertionError):
            _turn(world).end(target, failure=FAILURE)
        assert world.execution.status is source


def test_the_table_of_statuses_has_each_status_once() -> None:
    assert {each.target for each in STATUS_TRANSITIONS} == set(Status)
    assert len(STATUS_TRANSITIONS) == len(LEGAL_STATUSES)
