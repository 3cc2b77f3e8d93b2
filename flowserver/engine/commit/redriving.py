"""A redrive inside its transaction: what an ended execution has kept becomes its live scopes again.

The request was made from what was read before (`operations/redrives.py`), so here is checked whether that still holds:
the history must end with the same event.
"""

import logging
from collections.abc import Callable

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from flowserver.base.limits import Limits
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.crash_loop_guard import TooMuchAtOnce
from flowserver.engine.commit.items import Receipt, ReceiptKind, RedriveRequest
from flowserver.machine.messages import Message, Redrive
from flowserver.machine.redrive import waits_only
from flowserver.machine.redrive_fit import fit
from flowserver.machine.state import Execution, WaitKind
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.kept_scopes import load_kept, redrive_token_of, take_kept, version_of
from flowserver.store.executions.loading import StoredExecution, load_finished
from flowserver.store.executions.redrive_refusals import why_not, why_not_kept, why_not_waiting
from flowserver.store.executions.saving import Changes, VersionConflict
from flowserver.store.sql.prepared import execute_plain
from flowserver.store.versions.resolving import share_version

log = logging.getLogger(__name__)


class Redrives:
    """Redrives executions of one batch, each inside a savepoint."""

    def __init__(
        self,
        connection: Connection,
        context: BatchContext,
        stored: dict[str, StoredExecution],
        changes: dict[str, Changes],
    ) -> None:
        """`stored` and `changes` are the batch's."""
        self._connection = connection
        self._context = context
        self._stored = stored
        self._changes = changes

    def redrive(
        self,
        stored: StoredExecution,
        message: Message,
        request: RedriveRequest,
        advance: Callable[[StoredExecution, Message], Receipt],
    ) -> Receipt:
        """Redrive an execution; `advance` delivers the message and adds what it changes to `changes`.

        If the execution's state cannot be used, it stays as it was.
        """
        execution_id, was_running = stored.execution.execution_id, stored.execution.is_running
        assert isinstance(message, Redrive)
        if execution_id in self._changes and (message.starts_over or not was_running):
            return Receipt(ReceiptKind.NOT_NOW)  # it has changed in this very batch, and its state is not saved yet
        definitions, limits = self._context.definitions, self._context.limits
        has_changed = execution_id in self._changes
        execute_plain(self._connection, "SAVEPOINT redrive")
        try:
            refused = prepare_redrive(self._connection, definitions, stored, message, request, limits)
            receipt = refused or advance(stored, message)
            if refused is None:
                changes = self._changes[execution_id]
                changes.is_redriven = True
                changes.has_begun_again |= not was_running
        except (DBAPIError, TooMuchAtOnce, VersionConflict):  # the transaction is lost, and the savepoint with it
            raise
        except Exception as error:
            if has_changed:  # by earlier messages of the batch, which are then tried alone
                raise VersionConflict from error
            log.exception("execution %s cannot be redriven", execution_id)
            execute_plain(self._connection, "ROLLBACK TO SAVEPOINT redrive")
            del self._stored[execution_id]
            self._changes.pop(execution_id, None)
            receipt = Receipt(ReceiptKind.REFUSED, reason=f"its state cannot be used: {type(error).__name__}: {error}")
        execute_plain(self._connection, "RELEASE SAVEPOINT redrive")
        return receipt


def prepare_redrive(
    connection: Connection,
    definitions: DefinitionCache,
    stored: StoredExecution,
    message: Redrive,
    request: RedriveRequest,
    limits: Limits,
) -> Receipt | None:
    """Bring back what the execution has kept, fitted to its definition; or the receipt of a redrive that is refused.

    The scopes of a running execution that is to start over are in memory; they are as if it had kept them.
    """
    execution = stored.execution
    token = request.client_token
    if token in (stored.redrive_token, redrive_token_of(connection, execution.execution_id)):
        return Receipt(ReceiptKind.REPEATED)
    if execution.is_running and not (message.starts_over and waits_only(execution)):
        return _prepare_waiting(connection, stored, message, request, limits)
    reason = None if execution.is_running else why_not(stored, limits)
    if reason is not None:
        return Receipt(ReceiptKind.REFUSED, reason=reason)
    if execution.next_event_id - 1 != request.last_event_id:
        return Receipt(ReceiptKind.NOT_NOW)
    if request.version is not None and share_version(connection, (stored.flow_id, request.version)) is None:
        return Receipt(ReceiptKind.NOT_NOW)  # deleted since the plan was made
    reason = None if execution.is_running else load_kept(connection, stored)
    reason = reason or why_not_kept(execution, limits)
    if reason is None and request.definition_id != stored.definition_id and message.rewind is None:
        old, new = (definitions.get(connection, each) for each in (stored.definition_id, request.definition_id))
        reason = "; ".join(fit(old, new, execution)) or None
    if reason is not None:
        if not execution.is_running:
            execution.scopes.clear()
        return Receipt(ReceiptKind.REFUSED, reason=reason)
    if execution.is_running:
        stored.saved.clear()  # lists may have other numbers now, so rows are written whole
    else:
        take_kept(connection, execution.execution_id)
    load_finished(connection, stored, _needed(execution, message))
    stored.definition_id = request.definition_id
    stored.flow_version, stored.flow_alias = request.version, None
    if request.is_same:
        stored.flow_version, stored.flow_alias = version_of(connection, execution.execution_id)
    stored.redrive_token = token
    stored.parked_error = None
    return None


def _prepare_waiting(
    connection: Connection, stored: StoredExecution, message: Redrive, request: RedriveRequest, limits: Limits
) -> Receipt | None:
    """The receipt of a redrive of a running execution that is refused; None if steps of it wait for one.

    Its other steps go on meanwhile, so its history may have grown since the plan was made.
    """
    execution = stored.execution
    if not execution.waiting_steps:
        return Receipt(ReceiptKind.RUNNING)
    reason = why_not_waiting(execution, limits)
    if reason is not None:
        return Receipt(ReceiptKind.REFUSED, reason=reason)
    target = None if message.input_of is None else execution.scopes.get(message.input_of)
    is_other = message.input_of is not None and (target is None or target.wait is not WaitKind.REDRIVE)
    is_other |= request.definition_id != stored.definition_id or message.starts_over
    if is_other or request.redrive_count != execution.redrive_count:
        return Receipt(ReceiptKind.NOT_NOW)
    stored.flow_version, stored.flow_alias = version_of(connection, execution.execution_id)
    stored.redrive_token = request.client_token
    return None


def _needed(execution: Execution, message: Redrive) -> list[int]:
    """The scopes whose finished items the first turn needs: of joins that are made again, and that are dropped."""
    gathered = [scope for scope in execution.scopes.values() if scope.next_item > scope.open_items]
    dropped = set() if message.rewind is None else {message.rewind.scope_id}
    for scope in execution.scopes.values():  # parents come before their children
        if scope.parent_id in dropped:
            dropped.add(scope.scope_id)
    return [scope.scope_id for scope in gathered if scope.open_items == 0 or scope.scope_id in dropped]
