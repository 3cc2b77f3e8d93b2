"""Executions of sub-flows, and the executions whose steps wait for them, each as FLOW/NAME."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from flowserver.base.derived_ids import child_execution_id
from flowserver.base.json_values import load_stored_json
from flowserver.base.task_tokens import TaskTokens
from flowserver.machine.events import EventType
from flowserver.machine.state import Execution, Status, WaitKind
from flowserver.operations.history_search import EVENT_ID_MAX
from flowserver.store.executions.history import list_events
from flowserver.store.executions.history_search import EventFilter, search_events
from flowserver.store.executions.loading import read_header
from flowserver.store.executions.lookups import find_paths

NAMED_MAX: Final = 3
"""Executions that a reason names."""

READ_MAX: Final = 100
"""Executions that are looked at for a reason."""

CAUSES_READ: Final = 4
"""From the failure of a step to the event with which it has started the execution of its sub-flow, and one to spare."""

CALLERS_MAX: Final = 100
"""Executions, one above the other, that are looked at for one to redrive instead."""

WAITS_TRIED: Final = 100
"""Numbers of waits that are tried, from the last one down: other lists of the execution have taken some of them."""

_FAILED: Final = frozenset((EventType.STEP_FAILED, EventType.STEP_WAITING_FOR_REDRIVE))
_OF_CHILD: Final = _FAILED | {EventType.TASK_SUBMITTED, EventType.TASK_FAILED, EventType.TASK_TIMED_OUT}


def child_of(connection: Connection, execution_id: str, event_id: int) -> str | None:
    """The execution that a step has started and that led to this event of its history: it goes on, or has failed.

    None if the event does not say.
    """
    for _ in range(CAUSES_READ):
        events = list_events(connection, execution_id, from_event_id=event_id, limit=1)
        if not events or events[0].type not in _OF_CHILD:
            return None
        if events[0].type == EventType.TASK_SUBMITTED:
            output = load_stored_json(events[0].detail).get("output")
            named = isinstance(output, dict) and output.get("FlowName") and output.get("Name")
            return f"{output['FlowName']}/{output['Name']}" if named else None
        event_id = events[0].schedule_event_id
    return None


def child_by_id(connection: Connection, execution_id: str, scope_id: int, wait_id: int) -> str | None:
    """The execution that the step of a scope has started last, with a wait of this number or an earlier one.

    A sub-flow that ended before its start was confirmed has no event that names it, but its id follows from the wait's.
    """
    waits = range(wait_id, max(0, wait_id - WAITS_TRIED), -1)
    ids = [child_execution_id(execution_id, scope_id, each) for each in waits]
    found = find_paths(connection, ids)
    return next((found[each] for each in ids if each in found), None)


def last_wait(connection: Connection, execution_id: str) -> int:
    """The number of the execution's last wait; 0 if it is gone."""
    header = read_header(connection, execution_id)
    return 0 if header is None else header.execution.next_wait_id - 1


def last_failure(connection: Connection, execution_id: str, step_name: str, entered_event_id: int) -> int:
    """The event with which the step has failed last since it was entered; 0 if there is none."""
    wanted = EventFilter(step_name=step_name, types=_FAILED, is_backwards=True, after_event_id=entered_event_id)
    found, _ = search_events(connection, execution_id, wanted, from_event_id=EVENT_ID_MAX, limit=1, bytes_max=1)
    return found[0].event_id if found else 0


def waiting_children(connection: Connection, execution: Execution) -> Sequence[str]:
    """Of the executions that its steps wait for, the first that wait for a redrive themselves."""
    return list(islice(_waiting_children(connection, execution), NAMED_MAX))


def _waiting_children(connection: Connection, execution: Execution) -> Iterator[str]:
    scopes = (scope for scope in execution.scopes.values() if scope.wait is WaitKind.CHILD)
    for scope in islice(scopes, READ_MAX):
        child = read_header(
            connection, child_execution_id(execution.execution_id, scope.scope_id, scope.child_wait or scope.wait_id)
        )
        if child is not None and child.execution.waiting_steps:
            yield f"{child.execution.flow_name}/{child.execution.name}"


def caller_of(connection: Connection, callback_token: str, tokens: TaskTokens) -> Execution | None:
    """The header of the execution whose task gets the result of another one by this token; None if it is gone."""
    claim = tokens.read(callback_token)
    caller = None if claim is None else read_header(connection, claim.execution_id)
    return None if caller is None else caller.execution


def first_caller_of(connection: Connection, callback_token: str, tokens: TaskTokens) -> Execution | None:
    """The same, but if that execution has reported a bad end itself, the one above it, and so on."""
    caller = caller_of(connection, callback_token, tokens)
    for _ in range(CALLERS_MAX):
        has_reported = caller is not None and not caller.is_running and caller.status is not Status.SUCCEEDED
        if caller is None or not has_reported or caller.callback_token is None:
            return caller
        caller = caller_of(connection, caller.callback_token, tokens)
    return caller
