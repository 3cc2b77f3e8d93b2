"""The redrives of one batch. `store/executions/redriving.py` brings back what the executions have kept."""

import logging
from collections.abc import Callable, Container

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import Receipt, ReceiptKind
from flowserver.engine.commit.crash_loop_guard import TooMuchAtOnce
from flowserver.machine.messages import Message, Redrive
from flowserver.store.executions.new_executions import StartingStep
from flowserver.store.executions.redriving import RedriveRequest, prepare_redrive
from flowserver.store.executions.saving import Changes, TakenUp
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.sql.prepared import execute_plain

log = logging.getLogger(__name__)


class Redrives:
    """Redrives executions of one batch, each inside a savepoint."""

    def __init__(
        self,
        connection: Connection,
        context: BatchContext,
        stored: dict[str, StoredExecution],
        changes: dict[str, Changes],
        waiting: Container[StartingStep] = (),
    ) -> None:
        """`stored` and `changes` are the batch's; `waiting` has the takers whose steps still wait."""
        self._connection = connection
        self._context = context
        self._stored = stored
        self._changes = changes
        self._waiting = waiting

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
        has_changed = execution_id in self._changes
        assert isinstance(message, Redrive)
        taker = request.taker
        if taker is not None and taker.step not in self._waiting:
            return Receipt(ReceiptKind.STALE)
        if has_changed and (message.starts_over or not was_running):
            return Receipt(ReceiptKind.NOT_NOW)  # it has changed in this very batch, and its state is not saved yet
        definitions, limits = self._context.definitions, self._context.limits
        execute_plain(self._connection, "SAVEPOINT redrive")
        try:
            refusal = prepare_redrive(self._connection, definitions, stored, message, request, limits)
            if refusal is not None:
                receipt = Receipt(ReceiptKind[refusal.kind], reason=refusal.reason)
            else:
                receipt = advance(stored, message)
                changes = self._changes[execution_id]
                changes.is_redriven = True
                changes.has_begun_again |= not was_running
            if taker is not None and (refusal is None or refusal.kind == "TAKEN"):
                changes = self._changes.setdefault(execution_id, Changes(stored))
                changes.taken_up = TakenUp(taker.callback_token, taker.step.wait_id)
        except (DBAPIError, TooMuchAtOnce, VersionConflict):  # the transaction is lost, and the savepoint with it
            raise
        except Exception as error:
            if has_changed:  # by earlier messages of the batch, which are then tried alone
                raise VersionConflict from error
            log.exception("execution %(execution_id)s cannot be redriven", {"execution_id": execution_id})
            execute_plain(self._connection, "ROLLBACK TO SAVEPOINT redrive")
            del self._stored[execution_id]
            self._changes.pop(execution_id, None)
            receipt = Receipt(ReceiptKind.REFUSED, reason=f"its state cannot be used: {type(error).__name__}: {error}")
        execute_plain(self._connection, "RELEASE SAVEPOINT redrive")
        return receipt
