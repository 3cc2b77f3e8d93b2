"""What a redrive of an execution would do, or why it cannot be made; from what the execution has kept and its history.

Found out beside the writer. The writer takes a plan only if nothing has happened to the execution since.
"""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from uuid import uuid4

from sqlalchemy import Connection

from flowserver.base.json_values import JsonObject, json_bytes, load_stored_json, text_bytes
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.graph import Flow, Pattern, TaskStep
from flowserver.language.parser import parse_stored
from flowserver.machine.events import EventType
from flowserver.machine.messages import Redrive, Rewind
from flowserver.machine.redrive import calls_again, waits_only
from flowserver.machine.redrive_places import fit
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.machine.step_paths import open_steps
from flowserver.operations.callers import Sees, sees_all
from flowserver.operations.planned_children import PlannedChild, PlannedChildren
from flowserver.operations.sub_flows import first_caller_of, waiting_children
from flowserver.operations.undone_steps import undone_steps
from flowserver.operations.unfit_steps import shown_reasons
from flowserver.store.executions.history import list_events, scan_history
from flowserver.store.executions.kept_scopes import load_kept, redrive_token_of
from flowserver.store.executions.loading import load_scopes, read_header
from flowserver.store.executions.redrive_refusals import why_not, why_not_kept, why_not_waiting
from flowserver.store.executions.redriving import RedriveRequest
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.flows import FlowRow, load_definition
from flowserver.store.versions.versions import find_version

SHOWN_MAX: Final = 100
"""Steps that a plan names in each of its lists; it counts them all."""

EVENT_BYTES: Final = 64
"""About how long an event is besides its detail."""

Why = Literal["failed", "aborted", "asked"]

_RUNNING_SHOWN: Final = 3
"""Steps that a refusal names because they run."""

_ENTERED = (EventType.STEP_ENTERED, EventType.BRANCH_ENTERED, EventType.ITERATION_ENTERED)
_EXITED = (EventType.STEP_EXITED, EventType.BRANCH_EXITED, EventType.ITERATION_EXITED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveWish:
    """How to redrive: from a step of the flow's own list or from where it failed, with which definition and input."""

    from_step: str | None = None
    definition: Literal["same", "current"] | int = "same"
    """An integer is the number of a published version."""
    input: JsonObject | None = None
    """What the one step that runs again gets instead of its input."""
    client_token: str | None = None
    children: Literal["continue", "new"] = "continue"
    """What sub-flow steps that run again do: continue the executions of their last attempts, or start new ones."""


@dataclass(frozen=True, slots=True)
class Again:
    """A step that runs again."""

    path: str
    why: Why


@dataclass(slots=True)
class RedrivePlan:
    """What a redrive would do; it can be made if there are no `reasons` against it."""

    execution_id: str
    message: Redrive
    request: RedriveRequest
    is_repeated: bool
    """Whether the execution's last redrive had the same client token."""
    is_running: bool = False
    """Whether it runs and waits for the redrive, which then makes no further execution run."""
    reasons: list[str] = field(default_factory=list)
    is_end_reported: bool = False
    """Whether it cannot be redriven because the execution that waited for it has taken its end."""
    redrive_instead: str | None = None
    """FLOW/NAME of that execution, if it can be redriven instead as far as its status says."""
    again: list[Again] = field(default_factory=list)
    """The first `SHOWN_MAX` of them."""
    again_count: int = 0
    failed_count: int = 0
    """Those of them that failed; without `from` the others were aborted."""
    calls_again_count: int = 0
    """Calls of functions that are made again with the same input and idempotency key."""
    read_bytes: int = 0
    """How much of definitions, kept scopes and histories was read, without large values, to make the plan."""
    children: list[PlannedChild] = field(default_factory=list)
    """What the sub-flow steps do that run again at once, here and in the executions that are continued; only if asked
    for."""
    kept: Counter[str] = field(default_factory=Counter)
    """By name how often a step has succeeded that does not run again."""
    undone: dict[str, str] = field(default_factory=dict)
    """Of these steps, by name, those whose work a later step has undone, each with that step."""


def plan_redrive(
    connection: Connection,
    execution_id: str,
    flow: FlowRow,
    wish: RedriveWish,
    limits: Limits,
    tokens: TaskTokens,
    *,
    counts_kept: bool,
    children: PlannedChildren | None = None,
    sees: Sees = sees_all,
) -> RedrivePlan | None:
    """The plan, with the counts of what is kept only if asked for; None if the execution is gone.

    `children` finds out what sub-flow steps do. Executions of flows that the caller does not see are not named.
    """
    stored = read_header(connection, execution_id)
    if stored is None:
        return None
    request = _request(connection, stored, flow, wish)
    token = None if wish.client_token is None else redrive_token_of(connection, execution_id)
    is_repeated = token is not None and token == wish.client_token
    plan = RedrivePlan(execution_id, Redrive(), request, is_repeated, stored.execution.is_running)
    has_parent = stored.execution.callback_token is not None
    if not request.definition_id:
        plan.reasons.append(f"version {wish.definition} of flow {flow.name} does not exist")
    reason = _end_reported(connection, stored, tokens, plan, sees) or _load(connection, stored, limits, sees)
    plan.read_bytes += sum(scope.document_bytes for scope in stored.execution.scopes.values())
    if reason is not None:
        plan.reasons.append(reason)
        # Its parent may have continued it just now, while a bulk redrive found it ended.
        plan.is_end_reported |= plan.is_running and has_parent and stored.execution.redrive_count > 0
    if plan.reasons:
        return plan
    flow_then = _Planning(connection, stored, wish, plan, limits).run(counts_kept=counts_kept)
    if children is not None and flow_then is not None and not plan.reasons:
        children.look(stored, flow_then, plan.message, anew=wish.children == "new")
        plan.children = [_seen(each, sees) for each in children.found if sees(each.parent.partition("/")[0])]
    return plan


def _seen(planned: PlannedChild, sees: Sees) -> PlannedChild:
    """The same without what names an execution or a flow that the caller does not see."""
    if planned.child is None or sees(planned.child.partition("/")[0]):
        return planned
    return replace(planned, child=None)


def _load(connection: Connection, stored: StoredExecution, limits: Limits, sees: Sees) -> str | None:
    """Add the scopes that a redrive goes on with to the execution; or the reason why it cannot be redriven."""
    execution = stored.execution
    if not execution.is_running:
        return why_not(stored, limits) or load_kept(connection, stored) or why_not_kept(execution, limits)
    if stored.parked_error is not None:
        return "it is parked"
    broken = {} if stored.unreadable is None else {execution.execution_id: stored.unreadable}
    load_scopes(connection, [stored], broken)
    if not execution.waiting_steps:
        children = [each for each in waiting_children(connection, execution) if sees(each.partition("/")[0])]
        if not children:
            return "it is running"
        command = f"flowserver executions redrive {children[0]}"
        return f"it is running; redrive {', '.join(children)}, which it waits for ({command})"
    return broken.get(execution.execution_id) or why_not_waiting(execution, limits)


def _end_reported(
    connection: Connection, stored: StoredExecution, tokens: TaskTokens, plan: RedrivePlan, sees: Sees
) -> str | None:
    """Why the end of an execution that has reported it stays, which the plan then says; None if it has not."""
    execution = stored.execution
    if execution.callback_token is None or execution.is_running or execution.status is Status.SUCCEEDED:
        return None
    if stored.unreadable is not None:
        return None
    plan.is_end_reported = True
    caller = first_caller_of(connection, execution.callback_token, tokens)
    if caller is None:
        return "the step that it reports to has taken its end; redrive the execution of that step"
    if not sees(caller.flow_name):
        return "the step that it reports to, of a flow that the key is not for, has taken its end"
    path = f"{caller.flow_name}/{caller.name}"
    if caller.status is Status.SUCCEEDED or (caller.is_running and not caller.waiting_steps):
        return f"it has reported its end to {path}, which {'goes on' if caller.is_running else 'has succeeded'}"
    plan.redrive_instead = path
    return f"it has reported its end to {path}; redrive that (flowserver executions redrive {path})"


def _request(connection: Connection, stored: StoredExecution, flow: FlowRow, wish: RedriveWish) -> RedriveRequest:
    """The request without its message; its definition is "" if there is no such version."""
    definition_id, version = stored.definition_id, None
    if wish.definition == "current":
        definition_id = flow.definition_id
    elif isinstance(wish.definition, int):
        version = wish.definition
        found = find_version(connection, flow.flow_id, version)
        definition_id = "" if found is None else found.definition_id
    return RedriveRequest(
        definition_id=definition_id,
        last_event_id=stored.execution.next_event_id - 1,
        client_token=wish.client_token or str(uuid4()),
        redrive_count=stored.execution.redrive_count,
        is_same=wish.definition == "same",
        version=version,
        starts_children=wish.children == "new",
    )


class _Planning:
    """A plan in the making."""

    def __init__(
        self, connection: Connection, stored: StoredExecution, wish: RedriveWish, plan: RedrivePlan, limits: Limits
    ) -> None:
        self._connection = connection
        self._stored = stored
        self._execution: Execution = stored.execution
        self._wish = wish
        self._plan = plan
        self._limits = limits

    def run(self, *, counts_kept: bool) -> Flow | None:
        """Find out what runs again, and what is against it; returns the definition to continue with, if usable."""
        is_other = self._plan.request.definition_id != self._stored.definition_id
        old = self._flow(self._stored.definition_id)
        new = self._flow(self._plan.request.definition_id) if is_other else old
        if old is None or new is None:
            return None
        until = self._execution.next_event_id
        rewind = None
        starts_over = self._wish.from_step is not None or old is not new
        if self._execution.is_running and starts_over and not waits_only(self._execution):
            self._plan.reasons.append(_why_not_over(old, self._execution))
        elif self._wish.from_step is not None:
            rewind, until = self._rewind(new, self._wish.from_step)
        elif old is not new:
            self._plan.reasons += shown_reasons(fit(old, new, self._execution), new)
        if counts_kept:
            self._count_kept(old, until)
        if not self._plan.reasons:
            self._name_again(new, rewind)
        return new

    def _flow(self, definition_id: str) -> Flow | None:
        text = load_definition(self._connection, definition_id)
        try:
            if text is not None:
                self._plan.read_bytes += text_bytes(text)
                return parse_stored(text)
            problem = "is gone"
        except DefinitionRejected as error:
            problem = f"is not accepted: {error.message}"
        self._plan.reasons.append(f"definition {definition_id} {problem}")
        return None

    def _rewind(self, flow: Flow, name: str) -> tuple[Rewind | None, int]:
        """How to go back to a step of the flow's own list, and the event with which it was entered last."""
        position = flow.root.position.get(name)
        root = next((scope for scope in self._execution.scopes.values() if scope.parent_id is None), None)
        entered = 0 if root is None else self._entered(name)
        if position is None:
            self._plan.reasons.append(f"step {name} is not in the flow's own list of steps")
        if entered is None:
            most = self._limits.redrive_history_bytes_max
            self._plan.reasons.append(
                f"its history has more than {most} bytes, the limit redrive_history_bytes_max for `from`"
            )
        elif root is None or not entered:
            self._plan.reasons.append(f"step {name} of the flow's own list was never entered")
        if position is None or root is None or not entered:
            return None, self._execution.next_event_id
        event = list_events(self._connection, self._execution.execution_id, from_event_id=entered, limit=1)[0]
        return Rewind(root.scope_id, position, load_stored_json(event.detail)["local"]), entered

    def _entered(self, name: str) -> int | None:
        """The event with which the step of the flow's own list was entered last; 0 if there is none.

        None if the history is too long to be read.
        """
        depths, found = [0], 0
        most = self._plan.read_bytes + self._limits.redrive_history_bytes_max
        with closing(scan_history(self._connection, self._execution.execution_id)) as events:
            for event in events:
                self._plan.read_bytes += EVENT_BYTES + text_bytes(event.detail)
                if self._plan.read_bytes > most:
                    return None
                depth = depths[event.schedule_event_id] if event.schedule_event_id < len(depths) else 1
                depths.extend([1] * (event.event_id - len(depths)))  # in place of damaged events
                if event.type == EventType.EXECUTION_REDRIVEN:
                    depth = 0
                elif event.type in _ENTERED:
                    if depth == 0 and event.step_name == name:
                        found = event.event_id
                    depth += 1
                elif event.type in _EXITED:
                    depth -= 1
                depths.append(depth)
        return found

    def _count_kept(self, flow: Flow, until: int) -> None:
        succeeded: dict[str, int] = {}
        with closing(scan_history(self._connection, self._execution.execution_id)) as events:
            for event in events:
                if event.type == EventType.STEP_SUCCEEDED:
                    self._plan.kept[event.step_name] += event.event_id < until
                    succeeded[event.step_name] = event.event_id
        self._plan.kept = +self._plan.kept
        undone = undone_steps(flow, succeeded)
        self._plan.undone = {done: undo for done, undo in undone.items() if self._plan.kept[done]}

    def _name_again(self, flow: Flow, rewind: Rewind | None) -> None:
        """Name what runs again, and make the message."""
        plan, wish = self._plan, self._wish
        found: list[tuple[Scope, str]] = []
        if rewind is not None:
            target = self._execution.scopes[rewind.scope_id]
            target.step_index, target.list_id = rewind.step_index, 0
            plan.again, plan.again_count = [Again(str(wish.from_step), "asked")], 1
            targets = [target]
        else:
            found = [(scope, path) for scope, path in open_steps(flow, self._execution) if path]
            if self._execution.is_running:
                found = [(scope, path) for scope, path in found if scope.wait is WaitKind.REDRIVE]
            plan.again_count = len(found)
            plan.failed_count = sum(_why(scope) == "failed" for scope, _ in found)
            found.sort(key=lambda each: _why(each[0]) != "failed")
            plan.again = [Again(path, _why(scope)) for scope, path in found[:SHOWN_MAX]]
            targets = [scope for scope, _ in found]
            targets = [scope for scope in targets if _why(scope) == "failed"] or targets
        given = None if wish.input is None else self._target_of_input(flow, targets)
        detail: JsonObject = {} if wish.from_step is None else {"from": wish.from_step}
        if plan.request.definition_id != self._stored.definition_id:
            detail["definition"] = wish.definition
        if wish.children == "new":
            detail["children"] = wish.children
        plan.message = Redrive(
            enters_again=plan.request.definition_id != self._stored.definition_id,
            input_of=given,
            input=wish.input or {},
            rewind=rewind,
            detail=detail,
        )
        plan.calls_again_count = sum(calls_again(flow, scope, plan.message) for scope, _ in found)

    def _target_of_input(self, flow: Flow, targets: list[Scope]) -> int | None:
        """The scope whose step gets the edited input."""
        reason = None
        if len(targets) != 1:
            reason = f"{len(targets)} steps run again, so `input` does not say which of them it is for"
        else:
            steps = flow.lists[targets[0].list_id].steps[targets[0].step_index :]
            if not steps:
                reason = "no step runs again that `input` could be for: the list of steps was done"
            elif isinstance(steps[0], TaskStep) and steps[0].pattern is Pattern.WAIT_FOR_CALLBACK:
                reason = f"the input of step {steps[0].name} holds a task token, which `input` cannot"
            elif json_bytes(self._wish.input) > self._limits.step_data_bytes_max:
                reason = f"`input` holds more than {self._limits.step_data_bytes_max} bytes, step_data_bytes_max"
        if reason is not None:
            self._plan.reasons.append(reason)
            return None
        return targets[0].scope_id


def _why_not_over(flow: Flow, execution: Execution) -> str:
    """Why an execution that runs cannot start over: steps of it do not wait for the redrive."""
    paths = [path for scope, path in open_steps(flow, execution) if scope.wait is not WaitKind.REDRIVE]
    more = f" and {len(paths) - _RUNNING_SHOWN} more" if len(paths) > _RUNNING_SHOWN else ""
    running, address = ", ".join(paths[:_RUNNING_SHOWN]), f"{execution.flow_name}/{execution.name}"
    return (
        f"it runs {running}{more}; to go back to a step, or to change to another definition, all its open steps must "
        f"wait for a redrive. Wait for them, or stop it (flowserver executions stop {address}) and then redrive it "
        f"(flowserver executions redrive {address})"
    )


def _why(scope: Scope) -> Why:
    return "failed" if scope.has_failed or scope.wait is WaitKind.REDRIVE else "aborted"
