"""Executions of sub-flows, and the executions whose steps wait for them, each as FLOW/NAME."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from flowserver.base.derived_ids import child_execution_id
from flowserver.base.json_values import load_stored_json
from flowserver.base.task_tokens import TaskTokens
from flowserver.machine.events import EventType
from flowserver.machine.state import Execution, WaitKind
from flowserver.store.executions.history import list_events
from flowserver.store.executions.loading import read_header

NAMED_MAX: Final = 3
"""Executions that a reason names."""

READ_MAX: Final = 100
"""Executions that are looked at for a reason."""


def child_of(connection: Connection, execution_id: str, submitted_event_id: int) -> str | None:
    """The execution that a step has started with that event of its history; None if the event does not say."""
    events = list_events(connection, execution_id, from_event_id=submitted_event_id, limit=1)
    if not events or events[0].type != EventType.TASK_SUBMITTED:
        return None
    output = load_stored_json(events[0].detail).get("output")
    if not isinstance(output, dict) or not (output.get("FlowName") and output.get("Name")):
        return None
    return f"{output['FlowName']}/{output['Name']}"


def waiting_children(connection: Connection, execution: Execution) -> Sequence[str]:
    """Of the executions that its steps wait for, the first that wait for a redrive themselves."""
    return list(islice(_waiting_children(connection, execution), NAMED_MAX))


def _waiting_children(connection: Connection, execution: Execution) -> Iterator[str]:
    scopes = (scope for scope in execution.scopes.values() if scope.wait is WaitKind.CHILD)
    for scope in islice(scopes, READ_MAX):
        child = read_header(connection, child_execution_id(execution.execution_id, scope.scope_id, scope.wait_id))
        if child is not None and child.execution.waiting_steps:
            yield f"{child.execution.flow_name}/{child.execution.name}"


def caller_of(connection: Connection, callback_token: str, tokens: TaskTokens) -> str | None:
    """The execution whose task gets the result of another one by this token; None if it is gone."""
    claim = tokens.read(callback_token)
    caller = None if claim is None else read_header(connection, claim.execution_id)
    return None if caller is None else f"{caller.execution.flow_name}/{caller.execution.name}"
