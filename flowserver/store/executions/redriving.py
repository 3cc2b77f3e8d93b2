"""A redrive inside its transaction: what an ended execution has kept becomes its live scopes again.

The request was made from what was read before (`operations/redrives.py`), so here is checked whether that still holds:
the history must end with the same event. Of an execution that goes on meanwhile, while some steps wait for a redrive,
no other redrive may have been made.
"""

from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import Connection

from flowserver.base.limits import Limits
from flowserver.machine.messages import Redrive
from flowserver.machine.redrive import finished_items_needed, waits_only
from flowserver.machine.redrive_places import fit
from flowserver.machine.state import Status, WaitKind
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.continued_children import choose_children
from flowserver.store.executions.kept_scopes import load_kept, redrive_token_of, take_kept, version_of
from flowserver.store.executions.loading import load_finished
from flowserver.store.executions.new_executions import StartingStep
from flowserver.store.executions.redrive_refusals import why_not, why_not_kept, why_not_waiting
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.versions.resolving import share_version


class Taker(msgspec.Struct, frozen=True):
    """The attempt of a sub-flow step that continues the execution of an earlier attempt, and waits for its end."""

    step: StartingStep
    callback_token: str
    """By which the execution reports its end from now on."""


class RedriveRequest(msgspec.Struct, frozen=True):
    """What a redrive brings along besides its message, which was made from what the execution kept."""

    definition_id: str
    """The definition that the execution goes on with."""
    last_event_id: int
    """The last event of the history that the message was made for."""
    client_token: str
    """The caller's, or one of this request alone: a second try after a commit finds it."""
    redrive_count: int | None = None
    """How often a running execution, whose history grows meanwhile, had been redriven when the message was made."""
    is_same: bool = True
    """Whether the execution keeps its definition."""
    version: int | None = None
    """The number of another definition, if that is a published version."""
    starts_children: bool = False
    """Whether its sub-flow steps start new executions instead of continuing those of their last attempts."""
    taker: Taker | None = None
    """The step that takes the execution up, if not a caller redrives it. Its plan is the default one, at any event."""


class Refusal(NamedTuple):
    """Why no step of the execution is redriven, as the receipt says it. TAKEN: the taker gets its end as it is."""

    kind: Literal["REPEATED", "RUNNING", "NOT_NOW", "REFUSED", "STALE", "TAKEN"]
    reason: str = ""


def prepare_redrive(
    connection: Connection,
    definitions: DefinitionCache,
    stored: StoredExecution,
    message: Redrive,
    request: RedriveRequest,
    limits: Limits,
) -> Refusal | None:
    """Bring back what the execution has kept, fitted to its definition; or why the redrive is refused.

    The scopes of a running execution that is to start over are in memory; they are as if it had kept them.
    """
    execution = stored.execution
    if request.taker is not None:
        refusal = _prepare_taking_up(connection, definitions, stored, message, request, request.taker, limits)
        if refusal is None or refusal.kind == "TAKEN":
            execution.callback_token = request.taker.callback_token
        return refusal
    return _prepare(connection, definitions, stored, message, request, limits)


def _prepare_taking_up(
    connection: Connection,
    definitions: DefinitionCache,
    stored: StoredExecution,
    message: Redrive,
    request: RedriveRequest,
    taker: Taker,
    limits: Limits,
) -> Refusal | None:
    """The same for a step of the parent. A running execution goes on; a successful one has a result."""
    execution = stored.execution
    if execution.callback_token == taker.callback_token:
        return Refusal("REPEATED")
    if execution.status is Status.SUCCEEDED or (execution.is_running and not execution.waiting_steps):
        return Refusal("TAKEN")
    now = msgspec.structs.replace(
        request,
        definition_id=stored.definition_id,
        last_event_id=execution.next_event_id - 1,
        redrive_count=execution.redrive_count,
    )
    return _prepare(connection, definitions, stored, message, now, limits)


def _prepare(
    connection: Connection,
    definitions: DefinitionCache,
    stored: StoredExecution,
    message: Redrive,
    request: RedriveRequest,
    limits: Limits,
) -> Refusal | None:
    execution = stored.execution
    token = request.client_token
    if token in (stored.redrive_token, redrive_token_of(connection, execution.execution_id)):
        return Refusal("REPEATED")
    if execution.is_running and not (message.starts_over and waits_only(execution)):
        return _prepare_waiting(connection, stored, message, request, limits)
    reason = None if execution.is_running else why_not(stored, limits, is_taken_up=request.taker is not None)
    if reason is not None:
        return Refusal("REFUSED", reason)
    if execution.next_event_id - 1 != request.last_event_id:
        return Refusal("NOT_NOW")
    if request.version is not None and share_version(connection, (stored.flow_id, request.version)) is None:
        return Refusal("NOT_NOW")  # deleted since the plan was made
    reason = None if execution.is_running else load_kept(connection, stored)
    reason = reason or why_not_kept(execution, limits)
    if reason is None and request.definition_id != stored.definition_id and message.rewind is None:
        old, new = (definitions.get(connection, each) for each in (stored.definition_id, request.definition_id))
        reason = "; ".join(fit(old, new, execution)) or None
    if reason is not None:
        if not execution.is_running:
            execution.scopes.clear()
        return Refusal("REFUSED", reason)
    if execution.is_running:
        stored.saved.clear()  # lists may have other numbers now, so rows are written whole
    else:
        take_kept(connection, execution.execution_id)
    load_finished(connection, stored, finished_items_needed(execution, message))
    choose_children(connection, execution, limits, anew=request.starts_children)
    stored.definition_id = request.definition_id
    stored.flow_version, stored.flow_alias = request.version, None
    if request.is_same:
        stored.flow_version, stored.flow_alias = version_of(connection, execution.execution_id)
    stored.redrive_token = token
    stored.parked_error = None
    return None


def _prepare_waiting(
    connection: Connection, stored: StoredExecution, message: Redrive, request: RedriveRequest, limits: Limits
) -> Refusal | None:
    """Why the redrive of a running execution is refused; None if steps of it wait for one.

    Its other steps go on meanwhile, so its history may have grown since the plan was made.
    """
    execution = stored.execution
    if not execution.waiting_steps:
        return Refusal("RUNNING")
    reason = why_not_waiting(execution, limits)
    if reason is not None:
        return Refusal("REFUSED", reason)
    target = None if message.input_of is None else execution.scopes.get(message.input_of)
    is_other = message.input_of is not None and (target is None or target.wait is not WaitKind.REDRIVE)
    is_other |= request.definition_id != stored.definition_id or message.starts_over
    if is_other or request.redrive_count != execution.redrive_count:
        return Refusal("NOT_NOW")
    choose_children(connection, execution, limits, anew=request.starts_children)
    stored.flow_version, stored.flow_alias = version_of(connection, execution.execution_id)
    stored.redrive_token = request.client_token
    return None
