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
from flowserver.machine.state import WaitKind
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.kept_scopes import load_kept, redrive_token_of, take_kept, version_of
from flowserver.store.executions.loading import load_finished
from flowserver.store.executions.redrive_refusals import why_not, why_not_kept, why_not_waiting
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.versions.resolving import share_version


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


class Refusal(NamedTuple):
    """Why nothing is redriven, as the receipt says it."""

    kind: Literal["REPEATED", "RUNNING", "NOT_NOW", "REFUSED"]
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
    token = request.client_token
    if token in (stored.redrive_token, redrive_token_of(connection, execution.execution_id)):
        return Refusal("REPEATED")
    if execution.is_running and not (message.starts_over and waits_only(execution)):
        return _prepare_waiting(connection, stored, message, request, limits)
    reason = None if execution.is_running else why_not(stored, limits)
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
    stored.flow_version, stored.flow_alias = version_of(connection, execution.execution_id)
    stored.redrive_token = request.client_token
    return None
