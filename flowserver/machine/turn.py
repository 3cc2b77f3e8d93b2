"""One turn: the only object that changes an execution, and the record of what it changed.

Owns event numbering, the worklist of ready scopes, opening and removing scopes, and ending the execution.
Knows nothing of step types.

A loaded execution has its open scopes only. A turn that finishes the last branch or iteration needs the results of the
others, so it stops and names them in `wanted`; the batch loads them and runs the turn again in the same transaction.
So a report to a foreach over ten thousand callbacks costs the same at its beginning and at its end.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from flowserver.base.clock import format_instant
from flowserver.base.json_values import Json, JsonObject, dump_json
from flowserver.expressions.fuel import Fuel
from flowserver.expressions.paths import MISSING, Missing, find
from flowserver.language.graph import Flow, ForeachStep, Mappings, Step, TaskStep
from flowserver.machine.commands import CancelInvocation, Command, ReportCallback, StopInvocation, StopSubFlow
from flowserver.machine.data_sizes import Sizes
from flowserver.machine.events import Event, EventType, Part, cut
from flowserver.machine.kept_scopes import Kept, Taken, keep_scopes
from flowserver.machine.mappings import RUNTIME_ERROR, Environment, MissingSource, apply_mappings, fuel_for
from flowserver.machine.messages import Failure, TooLarge
from flowserver.machine.result_of_ended_execution import result_of_end
from flowserver.machine.service_params import is_asynchronous
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.machine.transitions import FOLLOWING, LEGAL_STATUSES


class OutcomeKind(Enum):
    """What a message did to the execution."""

    APPLIED = auto()
    STALE = auto()
    """It named a wait that is over; nothing changed."""
    ENDED = auto()
    """The execution had ended before; nothing changed."""
    NOT_NOW = auto()
    """A report in a phase that cannot take one; nothing changed."""
    REFUSED = auto()
    """A report with an output that the step cannot hold; nothing changed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of a message; `event_id` is the event that records it, 0 if none; `reason` explains a refusal."""

    kind: OutcomeKind
    event_id: int = 0
    reason: str = ""


APPLIED = Outcome(OutcomeKind.APPLIED)
STALE = Outcome(OutcomeKind.STALE)
ENDED = Outcome(OutcomeKind.ENDED)
NOT_NOW = Outcome(OutcomeKind.NOT_NOW)

STOPS_ALL = (Status.STOPPED, Status.TIMED_OUT)
"""Ends that the execution did not come to by itself: nothing that it has submitted is wanted any more."""

STEP_BYTES: Final = 16_384
"""Writing this much of an event's text takes about as long as one step."""

PART_STEP_BYTES: Final = 4_096
"""The same for a large value that was not shown before: it is measured, too, and stored in a row of its own."""


class EventsExhausted(Exception):
    """The execution has used up its history; the turn that meets this ends it."""


class Turn:
    """The changes one message makes to one execution.

    `events` and `commands` in order; `touched` and `removed` scope ids, disjoint (a scope that came and went within
    the turn is in neither); `joined`, the scopes whose finished items were taken, and after that `finished`, the items
    that were added, by scope id; `outcome`; `more` says that it has left ready scopes for another turn; `wanted`, the
    scopes whose finished items that turn needs in memory; `kept`, what an execution that has ended keeps for a redrive;
    `begins_to_wait` says that a step waits for a redrive, as the only one;
    `sizes` is what has been measured.
    """

    def __init__(self, flow: Flow, execution: Execution, environment: Environment) -> None:
        self.flow = flow
        self.execution = execution
        self.environment = environment
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.touched: set[int] = set()
        self.removed: set[int] = set()
        self.joined: set[int] = set()
        self.finished: dict[int, list[int]] = {}
        self.wanted: set[int] = set()
        self.kept: Kept | None = None
        self.taken: dict[int, Taken] = {}
        self.outcome = APPLIED
        self.more = False
        self.begins_to_wait = False
        self.steps_left = environment.limits.turn_steps_max
        self.sizes = execution.sizes or Sizes()
        self.ready: deque[int] = deque()
        self._first_new_id = execution.next_scope_id
        self._inputs: dict[int, JsonObject] = {}
        self.part_bytes: dict[int, int] = {}
        """Of the large values that events show, by identity: the events keep them alive."""
        self._opened = 0
        self._collections: dict[int, tuple[JsonObject | None, Json | Missing]] = {}
        """By scope id, with the input of the step that it was found in."""

    @property
    def steps(self) -> int:
        """How many steps the turn has made, and what counts as steps."""
        return self.environment.limits.turn_steps_max - self.steps_left

    # Events

    def record(self, type: EventType, step_name: str, cause: int, /, **detail: Json) -> int:
        """Append an event and return its id; raises EventsExhausted when only the last one is left."""
        return self._append(type, step_name, cause, detail)

    def record_in(self, scope: Scope, type: EventType, /, **detail: Json) -> int:
        """Append an event of the scope's current step, caused by the scope's last event."""
        event_id = self._append(type, self.step_of(scope).name, scope.last_event_id, detail)
        scope.last_event_id = event_id
        self.touched.add(scope.scope_id)
        return event_id

    def _append(self, type: EventType, step_name: str, cause: int, detail: JsonObject, *, is_last: bool = False) -> int:
        event_id = self.execution.next_event_id
        if event_id >= self.environment.limits.events_max and not is_last:
            raise EventsExhausted
        assert cause < event_id
        self.execution.next_event_id = event_id + 1
        rest, parts = cut(detail)
        text = dump_json(rest)
        self.events.append(Event(event_id, cause, type, step_name, self.environment.now_ms, text, parts))
        if parts or len(text) >= STEP_BYTES:
            self._count(text, parts)
        return event_id

    def _count(self, text: str, parts: tuple[Part, ...]) -> None:
        """Count what an event shows as steps, each large value once, so that a turn over much data takes no longer."""
        self.steps_left -= len(text) // STEP_BYTES
        for part in parts:
            if id(part.value) not in self.part_bytes:
                size = self.part_bytes[id(part.value)] = self.sizes.weigh(
                    self.environment.limits.step_data_bytes_max, part.value
                )
                self.steps_left -= size // PART_STEP_BYTES

    # Scopes

    def step_of(self, scope: Scope) -> Step:
        """The scope's current step."""
        return self.flow.lists[scope.list_id].steps[scope.step_index]

    def parent_of(self, scope: Scope) -> Scope | None:
        """The scope whose step opened this one."""
        return None if scope.parent_id is None else self.execution.scopes[scope.parent_id]

    def open_scope(self, parent: Scope | None, list_id: int, item: int, cause: int) -> Scope:
        """A new scope at the start of a list, ready to run; `cause` is the event its first step follows."""
        scope_id = self.execution.next_scope_id
        self.execution.next_scope_id += 1
        parent_id = None if parent is None else parent.scope_id
        scope = Scope(scope_id, parent_id, list_id, item, cause)
        self.execution.open_scope(scope)
        self.make_ready(scope)
        self._opened += 1
        if self._opened - self.steps > self.environment.limits.foreach_concurrency_max:
            self.steps_left -= 1  # loops within loops may open thousands, each as much work as a step
        return scope

    def take_as_new(self) -> None:
        """None of the execution's scopes has a row: all of them are to be saved."""
        self._first_new_id = 0
        self.touched.update(self.execution.scopes)

    def make_ready(self, scope: Scope) -> None:
        """Put the scope on the worklist."""
        assert WaitKind.READY in FOLLOWING[scope.wait]
        scope.wait = WaitKind.READY
        scope.wake_at = None
        self.touched.add(scope.scope_id)
        self.ready.append(scope.scope_id)

    def begin_wait(self, scope: Scope, kind: WaitKind, wake_at: int | None = None) -> None:
        """Let the scope wait, under a new wait id."""
        scope.wait_id = self.execution.next_wait_id
        self.execution.next_wait_id += 1
        self.change_wait(scope, kind, wake_at)

    def change_wait(self, scope: Scope, kind: WaitKind, wake_at: int | None) -> None:
        """Let the same wait go on for another reason."""
        assert kind in FOLLOWING[scope.wait], f"{kind} does not follow {scope.wait}"
        scope.wait = kind
        scope.wake_at = wake_at
        self.touched.add(scope.scope_id)

    def cancel_call(self, scope: Scope) -> None:
        """Order the scope's call to be dropped, if one is under way, and its submitted work to be stopped."""
        self.commands += self.cancellation_of(scope)

    def cancellation_of(self, scope: Scope) -> list[Command]:
        """The commands of `cancel_call`."""
        commands: list[Command] = []
        if scope.wait is WaitKind.TASK:
            commands.append(CancelInvocation(scope.scope_id, scope.wait_id))
        if self._holds_invocation(scope):
            commands.append(StopInvocation(submission_key(self.execution.execution_id, scope)))
        return commands + self.stop_of_sub_flow(scope)

    def stop_of_sub_flow(self, scope: Scope) -> list[Command]:
        """The command that stops the sub-flow that the scope may own. The end from outside stops all."""
        if scope.wait not in (WaitKind.TASK, WaitKind.CHILD) or self.execution.status in STOPS_ALL:
            return []
        step = self.step_of(scope)
        return [StopSubFlow(scope.wait_id)] if isinstance(step, TaskStep) and step.awaits_sub_flow else []

    def _holds_invocation(self, scope: Scope) -> bool:
        """Whether the scope waits for an asynchronous invocation. The end of the execution from outside stops all."""
        if scope.wait not in (WaitKind.TASK, WaitKind.TOKEN) or self.execution.status in STOPS_ALL:
            return False
        step = self.step_of(scope)
        return isinstance(step, TaskStep) and is_asynchronous(step, scope.step_input or {})

    def remove_opened_by(self, scope: Scope) -> None:
        """Remove the scopes that the scope's step opened, all of them finished, from the execution."""
        children = self.execution.opened_by(scope)
        self.taken[scope.scope_id] = Taken({}, [], children)
        for child in children:
            self.drop_scope(child)

    def finish_scope(self, parent: Scope, scope: Scope) -> None:
        """A branch or iteration is done: keep its result for the join of its parent and drop the scope."""
        self.execution.finish_scope(parent, scope)
        self.finished.setdefault(parent.scope_id, []).append(scope.item)
        self.touched.add(parent.scope_id)
        self._note_gone(scope)

    def take_finished(self, scope: Scope) -> list[JsonObject]:
        """The results of all branches or iterations of the scope's step, in order."""
        new_items = self.finished.pop(scope.scope_id, [])
        self.taken[scope.scope_id] = Taken(scope.finished, new_items, [], scope.scope_id in self.joined)
        self.joined.add(scope.scope_id)
        self.sizes.lasting.clear()
        return self.execution.take_finished(scope)

    def await_finished(self, scope: Scope) -> bool:
        """Whether finished items of the scope are missing from memory. If so, the scope is added to `wanted`."""
        if scope.has_all_finished:
            return False
        self.wanted.add(scope.scope_id)
        return True

    def drop_scope(self, scope: Scope) -> None:
        """Remove a scope from the execution; a call that it waits for is dropped."""
        self.cancel_call(scope)
        self.execution.drop_scope(scope)
        self._note_gone(scope)

    def _note_gone(self, scope: Scope) -> None:
        self.touched.discard(scope.scope_id)
        if scope.scope_id < self._first_new_id:
            self.removed.add(scope.scope_id)

    def take_ready(self) -> Iterator[Scope]:
        """The ready scopes in order, including those that become ready meanwhile, up to the turn's limit."""
        while self.ready and self.steps_left > 0:
            self.steps_left -= 1
            yield self.execution.scopes[self.ready.popleft()]
        self.more = bool(self.ready or self.wanted)

    # Documents

    def hold(self, scope: Scope, document_bytes: int) -> TooLarge | None:
        """Record the size of the scope's documents in bytes; refused if all scopes together then exceed the limit."""
        execution, bytes_max = self.execution, self.environment.limits.execution_data_bytes_max
        together = execution.document_bytes - scope.document_bytes + document_bytes
        if together > bytes_max and document_bytes > scope.document_bytes:
            cause = f"the open step lists together: more than {bytes_max} bytes, the limit execution_data_bytes_max"
            return TooLarge(RUNTIME_ERROR, cause)
        execution.document_bytes = together
        scope.document_bytes = document_bytes
        return None

    def input_of(self, scope: Scope) -> JsonObject:
        """The `$input` that the scope's steps see.

        It is never stored: the flow's own follows from the execution's input, a nested one from its parent's step.
        """
        known = self._inputs.get(scope.scope_id)
        if known is None:
            known = self._find_input(scope)
            self._inputs[scope.scope_id] = known
        return known

    def _find_input(self, scope: Scope) -> JsonObject:
        parent = self.parent_of(scope)
        if parent is None:
            mapped = self.flow_input("null", None)  # inputs that fail were refused at the start
            assert not isinstance(mapped, Failure), "an execution whose input cannot be mapped never gets a scope"
            return mapped
        step, step_input = self.step_of(parent), parent.step_input
        assert step_input is not None
        if not isinstance(step, ForeachStep):
            return step_input
        collection = self.collection_of(parent, step)
        assert isinstance(collection, list), "checked when the foreach was entered"
        iteration = {**step_input, step.item: collection[scope.item]}
        if step.index is not None:
            iteration[step.index] = scope.item
        return iteration

    def collection_of(self, scope: Scope, step: ForeachStep) -> Json | Missing:
        """The collection of the scope's current foreach; evaluated once in a turn, since `[*]` makes a new list."""
        step_input, collection = self._collections.get(scope.scope_id, (None, MISSING))
        if step_input is not scope.step_input:
            collection = find(step.collection, scope.step_input)
            self.sizes.lasting.update(map(id, (scope.step_input or {}).values()))
            self._collections[scope.scope_id] = scope.step_input, collection
        return collection

    def flow_input(self, missing_source: MissingSource, fuel: Fuel | None) -> JsonObject | Failure:
        """The execution's input after the flow's inputMappings."""
        given, mappings = self.execution.input, self.flow.input_mappings
        if mappings is None:
            return given
        context = self.context()
        return apply_mappings(
            mappings, input=given, local={}, context=context, missing_source=missing_source, fuel=fuel
        )

    def map(self, mappings: Mappings, input: Json, local: Json, context: JsonObject) -> JsonObject | Failure:
        """Apply a mapping list under the server's `missing_source` setting and its size limit."""
        missing, fuel = self.environment.missing_source, fuel_for(self.environment.limits.step_data_bytes_max)
        return apply_mappings(mappings, input=input, local=local, context=context, missing_source=missing, fuel=fuel)

    def context(self) -> JsonObject:
        """`$context` as the flow's own mappings see it."""
        execution = self.execution
        return {
            "flow": {"name": execution.flow_name},
            "execution": {"name": execution.name, "startedTime": format_instant(execution.started_at)},
        }

    # Ending

    def end(self, status: Status, *, output: JsonObject | None = None, failure: Failure | None = None) -> None:
        """End the execution: its last event, its status, no scopes left, its callback on the way.

        The last event may use the place that `events_max` reserves.
        """
        execution = self.execution
        assert (execution.status, status) in LEGAL_STATUSES
        execution.status = status
        execution.stopped_at = self.environment.now_ms
        if execution.waiting_steps is not None:
            execution.waiting_steps = 0
        execution.output = output
        if failure is not None:
            execution.error, execution.cause = failure.error, failure.cause
        detail = {"output": output} if failure is None else {"error": failure.error, "cause": failure.cause}
        self._append(EventType(f"Execution{status}"), "", execution.next_event_id - 1, detail, is_last=True)
        if self._may_be_redriven(status):
            kept = Kept(set(self.touched), set(self.removed), set(self.joined), dict(self.finished))
            self.kept = keep_scopes(execution, kept, self.taken)
        for scope in list(execution.scopes.values()):
            self.drop_scope(scope)
        execution.document_bytes = 0
        self.finished.clear()
        self.wanted.clear()
        if status in STOPS_ALL:
            self.commands.append(StopInvocation())
        self.ready.clear()
        if execution.callback_token is not None:
            result = result_of_end(status, output, execution.error, execution.cause)
            self.commands.append(ReportCallback(execution.callback_token, result))

    def _may_be_redriven(self, status: Status) -> bool:
        """Not if it succeeded, or its history is full."""
        return status is not Status.SUCCEEDED and self.execution.next_event_id < self.environment.limits.events_max


def idempotency_key(execution_id: str, scope: Scope) -> str:
    """The idempotency key of all calls of one entry of a step."""
    return f"{execution_id}-{scope.entered_event_id}"


def submission_key(execution_id: str, scope: Scope) -> str:
    """The idempotency key of the work that one attempt of a step submits."""
    return f"{idempotency_key(execution_id, scope)}-{scope.wait_id}"
