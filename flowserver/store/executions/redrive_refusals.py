"""Why a stored execution cannot be redriven: by its header alone, by what it has kept, or while it runs. Pure."""

from flowserver.base.limits import Limits
from flowserver.machine.state import Execution, Status
from flowserver.store.executions.retention import HIDDEN
from flowserver.store.executions.stored_execution import StoredExecution

EVENTS_PER_SCOPE = 10
"""A redrive records at most so many events for a scope before it waits again, and must have room for them."""


def why_not(stored: StoredExecution, limits: Limits, *, is_taken_up: bool = False) -> str | None:
    """Why an execution that does not run cannot be redriven, by its header alone; None if it can.

    `is_taken_up`: by a step of its parent, which then waits for its end again.
    """
    execution = stored.execution
    if stored.unreadable is not None:
        return stored.unreadable
    if execution.status is Status.SUCCEEDED:
        return "it has succeeded"
    if stored.flow_id == HIDDEN:
        return "it is being deleted"
    if execution.callback_token is not None and not is_taken_up:
        return "the step that it reports to has taken its end; redrive the execution of that step"
    if execution.next_event_id + EVENTS_PER_SCOPE >= limits.events_max:
        return f"its history has no room: {execution.next_event_id - 1} events of events_max, {limits.events_max}"
    return None


def why_not_kept(execution: Execution, limits: Limits) -> str | None:
    """Why it cannot be redriven with the scopes that it has kept."""
    if not execution.scopes and execution.next_scope_id > 1:
        return "its state was not kept: it ended before this server could redrive, or its history was full"
    needed = EVENTS_PER_SCOPE * len(execution.scopes)
    if execution.next_event_id + needed >= limits.events_max:
        return f"its history has no room for the {needed} events of {len(execution.scopes)} open step lists"
    return None


def why_not_waiting(execution: Execution, limits: Limits) -> str | None:
    """Why a running execution cannot be redriven, some of whose steps wait for that; None if it can."""
    needed = EVENTS_PER_SCOPE * ((execution.waiting_steps or 0) + 1)
    if execution.next_event_id + needed >= limits.events_max:
        return f"its history has no room: {execution.next_event_id - 1} events of events_max, {limits.events_max}"
    return None
