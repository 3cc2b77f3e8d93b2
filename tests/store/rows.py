"""Valid rows for the store's tests, which change only the values that they test."""

from typing import Any

from sqlalchemy import Connection

from flowserver.machine.events import Event, EventType
from flowserver.machine.invocations.lifecycle import InvocationMessage, advance_invocation, submitted
from flowserver.machine.invocations.states import InvocationSettings
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.store.access_keys import AccessKey
from flowserver.store.executions.saving import Changes, save_changes
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.flows import FlowRow, definition_id_of, insert_flow
from flowserver.store.functions import FunctionRow
from flowserver.store.invocations.rows import InvocationRow

NODE = "node-1"
DEFINITION = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: p\n"


def flow_row(name: str, flow_id: str = "", definition: str = DEFINITION, **changes: Any) -> FlowRow:
    flow_id = flow_id or f"flow-{name}"
    values: dict[str, Any] = {
        "flow_id": flow_id,
        "name": name,
        "description": "",
        "type": "FDL",
        "role_arn": "",
        "execution_mode": "",
        "external_storage_location": "",
        "environment": "",
        "definition_id": definition_id_of(flow_id, definition),
        "definition": definition,
        "created_at": 1,
        "modified_at": 1,
    }
    return FlowRow(**{**values, **changes})


def keep_flow(connection: Connection, name: str, flow_id: str = "") -> FlowRow:
    row = flow_row(name, flow_id)
    assert insert_flow(connection, row)
    return row


def new_execution(execution_id: str, flow_id: str = "flow-f", **changes: Any) -> StoredExecution:
    values: dict[str, Any] = {
        "execution_id": execution_id,
        "flow_name": "f",
        "name": execution_id,
        "input": {},
        "started_at": 1_000,
        "deadline_at": 1_000_000,
    }
    return StoredExecution(Execution(**{**values, **changes}), flow_id, "definition-1", 0, "")


def scope(scope_id: int, wait: WaitKind = WaitKind.JOIN, **changes: Any) -> Scope:
    values = {"scope_id": scope_id, "parent_id": None, "list_id": 0, "item": 0, "last_event_id": 1, "wait": wait}
    return Scope(**{**values, **changes})


def save_new(connection: Connection, stored: StoredExecution, *scopes: Scope, node_id: str = NODE) -> StoredExecution:
    """Insert the execution with these scopes."""
    stored.execution.scopes = {each.scope_id: each for each in scopes}
    save_changes(connection, [Changes(stored, touched=set(stored.execution.scopes))], node_id)
    return stored


def end(stored: StoredExecution, status: Status, **results: Any) -> StoredExecution:
    stored.execution.status = status
    stored.execution.stopped_at = stored.execution.started_at + 5
    for name, value in results.items():
        setattr(stored.execution, name, value)
    return stored


def event(event_id: int, type: EventType = EventType.STEP_ENTERED, detail: str = "{}") -> Event:
    return Event(event_id, event_id - 1, type, "step", 1_000 + event_id, detail)


def function_row(service: str, function: str, **changes: Any) -> FunctionRow:
    values: dict[str, Any] = {
        "service": service,
        "function": function,
        "url": "http://127.0.0.1:9/f",
        "headers": {"x-key": "ü"},
        "timeout_seconds": 60,
        "created_at": 1,
        "modified_at": 1,
    }
    return FunctionRow(**{**values, **changes})


def invocation_row(key: str, node_id: str | None = NODE, *messages: InvocationMessage, **changes: Any) -> InvocationRow:
    """An invocation of `s/f` that was submitted at 1 ms, after these changes in the next millisecond."""
    settings = changes.pop("settings", InvocationSettings())
    state = submitted(settings, changes.pop("created_at", 1))
    for message in messages:
        state = advance_invocation(state, message, 2)
    values: dict[str, Any] = {
        "invocation_key": key,
        "node_id": None if state.is_over or state.wake_at is not None else node_id,
        "service": "s",
        "qualifier": "",
        "function": "f",
        "invocation_id": key,
        "request_id": f"request of {key}",
        "state": state,
        "payload": b"{}",
    }
    return InvocationRow(**{**values, **changes})


def access_key(access_key_id: str, **changes: Any) -> AccessKey:
    values: dict[str, Any] = {
        "access_key_id": access_key_id,
        "secret": "secret",
        "token_digest": f"digest-{access_key_id}",
        "label": "",
        "created_at": 1,
        "disabled_at": None,
        "role": "viewer",
        "flows": "order-",
        "expires_at": None,
        "last_used_at": None,
    }
    return AccessKey(**{**values, **changes})
