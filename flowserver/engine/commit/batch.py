"""One batch: many messages, one transaction. Synchronous; runs in the writer's thread.

Loads the executions, advances each with the machine, saves the changes. An execution that cannot continue (unreadable
rows, an unusable definition, a bug) is parked, and the others continue. `execution_cache` says why a cached execution
is safe to use.

A transaction is bounded twice. If the documents that it holds in memory exceed `execution_data_bytes_max`, it raises
TooMuchAtOnce, and the committer tries a part of the items. Once it has made MADE_BYTES of documents and events, it
leaves the rest of the items to a later batch, and their executions unchanged. So `run` may answer only the first items.

An execution whose first message is a stop is loaded without its scopes: a stop ends also what is too large or too
damaged to load. `fair_queue` puts stops first.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, OperationalError

from flowserver.base.errors import SignatureNonceUsed
from flowserver.engine.commit.batch_context import SHARED_BYTES, BatchContext
from flowserver.engine.commit.batch_items import (
    ENDING,
    Envelope,
    Item,
    Receipt,
    ReceiptKind,
    Write,
)
from flowserver.engine.commit.batch_redrives import Redrives
from flowserver.engine.commit.batch_starts import Starts
from flowserver.engine.commit.crash_loop_guard import TooMuchAtOnce
from flowserver.engine.commit.scope_loading import load_lists
from flowserver.engine.commit.spent_nonces import SpentNonces
from flowserver.engine.commit.turns_of_message import history_bytes, make_turns
from flowserver.language.graph import Flow
from flowserver.machine.messages import Continue, Message, Redrive, Stop, TaskReplied
from flowserver.machine.state import Execution
from flowserver.machine.turn import OutcomeKind
from flowserver.store.cluster.nodes import hold_lease_later
from flowserver.store.executions.history import has_event
from flowserver.store.executions.loading import load_headers
from flowserver.store.executions.saving import Changes, clear_callbacks, park_execution, save_changes
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.executions.sub_flows import is_ownerless, parents_of_starts
from flowserver.store.invocations.untold_results import clear_invocation_callbacks
from flowserver.store.sql.prepared import execute_plain, send_waiting

log = logging.getLogger(__name__)

EMPTY_FLOW = Flow(version="v1", lists=())

RETRIED_LATER = (ReceiptKind.NOT_NOW, ReceiptKind.PARKED)
"""Receipts of a callback that its task may still accept later."""


@dataclass(slots=True)
class BatchResult:
    """For each answered item its receipt, or the write's return value or exception; and which executions changed."""

    answers: list[Any] = field(default_factory=list)
    changes: list[Changes] = field(default_factory=list)
    continuing: list[str] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)
    seconds: float | None = None
    """How long the transaction took; None if none was committed."""
    held_bytes: int = 0
    """Documents that were read, and documents and events that were made."""
    continued_steps: int = 0
    """Steps made for `Continue` messages."""

    @property
    def effects(self) -> "BatchResult":
        """The same without the answers: what follows from it once it is durable."""
        return BatchResult(changes=self.changes, continuing=self.continuing, parked=self.parked)


class Batch:
    """One transaction's worth of work over an open connection."""

    def __init__(
        self,
        connection: Connection,
        context: BatchContext,
        *,
        headers_only: bool = False,
        is_shared: bool = False,
        nonces_singly: bool = False,
    ) -> None:
        """With `headers_only` executions are loaded without their scopes; all items must end them.

        `is_shared` says that other executions wait for the writer: then each `Continue` makes a short turn, and one
        execution may make less of the batch. `nonces_singly` is as of `SpentNonces`.
        """
        self._connection = connection
        self._headers_only = headers_only
        self._nonces_singly = nonces_singly
        self._context = context
        self._environment = context.environment()
        self._environment_to_go_on = context.environment(to_go_on=True) if is_shared else self._environment
        self._made_max = context.made_bytes_max
        self._again_max = min(SHARED_BYTES, self._made_max) if is_shared else self._made_max
        self._stored: dict[str, StoredExecution] = {}
        self._broken: dict[str, str] = {}
        self._parked: list[str] = []
        self._changes: dict[str, Changes] = {}
        self._more: set[str] = set()
        self._kept: Collection[str] = ()
        self._ending: set[str] = set()
        self._held = 0
        self._made = 0
        self._made_by: dict[str, int] = {}
        self._left: set[str] = set()
        self._steps_gone_on = 0
        self._may_divide = False

    def run(self, items: Sequence[Item]) -> BatchResult:
        """Process the items in order and save; the caller commits, and only then acts on the result.

        Raises LeaseLost before any turn if this node was declared dead. Raises NotMarked, TooMuchAtOnce and
        NonceRepeated; the caller must roll back.
        """
        hold_lease_later(self._connection, self._context.lease.node_id)
        self._nonces = SpentNonces(self._connection, items, singly=self._nonces_singly)
        self._may_divide = len(items) > 1
        envelopes = [item for item in items if isinstance(item, Envelope) and not self._nonces.refuses(item)]
        news = [envelope.new for envelope in envelopes if envelope.new is not None]
        self._ending = _ending(envelopes)
        redriven = {each.execution_id for each in envelopes if each.redrive is not None}
        takers = [each.redrive.taker.step for each in envelopes if each.redrive is not None and each.redrive.taker]
        waiting = parents_of_starts(self._connection, takers).keys()  # locks the parents' rows before the children's
        self._load([envelope.execution_id for envelope in envelopes if envelope.new is None], redriven)
        self._starts = Starts(self._connection, news, self._stored, self._context.limits.sub_flow_depth_max)
        send_waiting(self._connection)
        self._redrives = Redrives(self._connection, self._context, self._stored, self._changes, waiting)
        answers = self._do_all(items)
        self._left = {item.execution_id for item in items[len(answers) :] if isinstance(item, Envelope)}
        items = items[: len(answers)]
        self._left.difference_update(self._changes)
        answers = [self._revise(item, answer) for item, answer in zip(items, answers, strict=True)]
        changes = [each for each in self._changes.values() if each.is_saved]
        save_changes(self._connection, changes, self._context.lease.holder)
        self._starts.save(parked=self._broken)
        settled = _settled(items, answers)
        clear_callbacks(
            self._connection, [(each.settles, each.settles_token) for each in settled if each.settles is not None]
        )
        clear_invocation_callbacks(
            self._connection, [each.settles_invocation for each in settled if each.settles_invocation is not None]
        )
        self._context.crash_loop_guard.clear(
            self._connection, self._context.lease.node_id, self._stored.keys() - self._left
        )
        continuing = [execution_id for execution_id in self._changes if execution_id in self._more]
        self._nonces.may_be_committed()
        return BatchResult(
            answers,
            changes,
            continuing,
            self._parked,
            held_bytes=self._held,
            continued_steps=self._steps_gone_on,
        )

    def settle(self) -> None:
        """The transaction is durable: cache the executions that will be needed soon, or are expensive to load."""
        self._context.crash_loop_guard.cleared(self._stored.keys() - self._left)
        for changes in self._changes.values():
            changes.stored.version += changes.is_saved
        for execution_id, stored in self._stored.items():
            if stored.parked_error is not None or not stored.execution.is_running:
                continue
            has_calls = self._context.lease.node_id in stored.leases.values()
            was_kept = execution_id in self._left and execution_id in self._kept
            if has_calls or was_kept or execution_id in self._more or stored.is_worth_keeping:
                self._context.cache.keep(stored)

    def _load(self, execution_ids: list[str], redriven: Collection[str]) -> None:
        if not execution_ids:
            return
        warm = self._context.cache.take(self._connection, set(execution_ids))
        cold = [execution_id for execution_id in execution_ids if execution_id not in warm]
        self._stored, broken = load_headers(self._connection, cold, bare=self._headers_only)
        if cold and not self._headers_only:
            limits, guard = self._context.limits, self._context.crash_loop_guard
            self._held = load_lists(self._connection, self._stored, broken, self._ending, guard, limits, redriven)
        self._stored |= warm
        self._kept = warm.keys()
        for execution_id, error in broken.items():
            stored = self._stored[execution_id]
            if not stored.execution.is_running or stored.parked_error is not None:
                stored.unreadable = error
                continue  # it makes no progress anyway
            log.error("execution %(execution_id)s is parked: %(error)s", {"execution_id": execution_id, "error": error})
            stored.parked_error = error
            self._parked.append(execution_id)
            park_execution(self._connection, execution_id, error)

    def _do_all(self, items: Sequence[Item]) -> list[Any]:
        """Answers to the first items, up to the bound of what a batch makes."""
        return [self._do(item) for item in takewhile(self._has_room, items)]

    def _has_room(self, item: Item) -> bool:
        made_by = self._made_by.get(item.execution_id, 0) if isinstance(item, Envelope) else 0
        return self._made <= self._made_max and made_by <= self._again_max

    def _do(self, item: Item) -> Any:
        if self._nonces.refuses(item):
            return SignatureNonceUsed()
        if not isinstance(item, Envelope):
            return self._write(item)
        if item.new is None:
            return self._tell(item)
        return self._first_receipt(item) or self._starts.start(item, item.new, self._tell)

    def _write(self, write: Write) -> Any:
        if write.change is None:
            return None
        execute_plain(self._connection, "SAVEPOINT item")  # SQLAlchemy's savepoints take 40 times as long
        try:
            answer = write.change(self._connection)
            execute_plain(self._connection, "RELEASE SAVEPOINT item")
            return answer
        except OperationalError:  # the transaction may be lost, with all earlier items
            raise
        except Exception as error:  # it fails alone: its caller gets the exception
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise
            execute_plain(self._connection, "ROLLBACK TO SAVEPOINT item")
            execute_plain(self._connection, "RELEASE SAVEPOINT item")
            return error

    def _tell(self, envelope: Envelope) -> Receipt:
        stored = self._stored.get(envelope.execution_id)
        if stored is None:
            parked = envelope.execution_id in self._broken
            return Receipt(ReceiptKind.PARKED if parked else ReceiptKind.UNKNOWN)
        is_parked = stored.parked_error is not None and stored.execution.is_running
        if is_parked and not isinstance(envelope.message, ENDING):
            return Receipt(ReceiptKind.PARKED)
        if not self._is_leased(envelope, stored):
            return Receipt(ReceiptKind.STALE)
        if envelope.if_ownerless and not is_ownerless(self._connection, envelope.execution_id):
            return Receipt(ReceiptKind.STALE)
        if (receipt := self._first_receipt(envelope)) is not None:
            return receipt
        try:
            if envelope.redrive is not None:
                return self._redrives.redrive(stored, envelope.message, envelope.redrive, self._advance)
            return self._advance(stored, envelope.message)
        except (DBAPIError, TooMuchAtOnce, VersionConflict):  # the transaction is lost, with all earlier items
            raise
        except Exception as error:  # a bug or a damaged record: only this execution stops
            log.exception("execution %(execution_id)s is parked", {"execution_id": envelope.execution_id})
            self._park(stored.execution, f"{type(error).__name__}: {error}")
            return Receipt(ReceiptKind.PARKED)

    def _first_receipt(self, envelope: Envelope) -> Receipt | None:
        """The receipt of an earlier try if that was committed."""
        tried = envelope.tried
        if tried is None or not has_event(self._connection, envelope.execution_id, tried.event):
            return None
        return tried.receipt

    def _is_leased(self, envelope: Envelope, stored: StoredExecution) -> bool:
        """Whether this node holds the call of the reply, under the same lease as when it made the call."""
        if envelope.lease is None or not isinstance(envelope.message, TaskReplied):
            return True
        holder = stored.leases.get(envelope.message.scope_id, envelope.lease)
        return envelope.lease == holder == self._context.lease.node_id

    def _advance(self, stored: StoredExecution, message: Message) -> Receipt:
        flow = EMPTY_FLOW  # not needed to end an execution, and may be what is broken
        if isinstance(message, Redrive) or (stored.execution.is_running and not isinstance(message, ENDING)):
            flow = self._context.definitions.get(self._connection, stored.definition_id)
        execution_id, bytes_before = stored.execution.execution_id, stored.execution.document_bytes
        environment = self._environment_to_go_on if isinstance(message, Continue) else self._environment
        turns = make_turns(self._connection, flow, stored, message, environment)
        self._changes.setdefault(execution_id, Changes(stored)).add(*turns)
        grown = stored.execution.document_bytes - bytes_before
        self._grow(execution_id, grown, history_bytes(turns, stored.parts), is_made=not isinstance(message, Stop))
        if isinstance(message, Continue):
            self._steps_gone_on += sum(turn.steps for turn in turns)
        if turns[-1].more:
            self._more.add(execution_id)
        elif len(turns) > 1 or isinstance(message, Continue) or not stored.execution.is_running:
            self._more.discard(execution_id)  # no scope is ready any more
        outcome = turns[0].outcome
        return Receipt(_KINDS[outcome.kind], outcome.event_id, reason=outcome.reason)

    def _grow(self, execution_id: str, document_bytes: int, history_bytes: int, *, is_made: bool) -> None:
        """Count what the batch holds and what it made. An execution that shrinks makes no room for other items, because
        its change has to be written too. What a stop makes is small and takes no room from other items.
        """
        self._held += document_bytes + history_bytes
        if is_made:
            made = max(document_bytes, 0) + history_bytes
            self._made += made
            self._made_by[execution_id] = self._made_by.get(execution_id, 0) + made
        if self._held > self._context.limits.execution_data_bytes_max and self._may_divide:
            raise TooMuchAtOnce

    def _park(self, execution: Execution, error: str) -> None:
        """Discard everything that this batch did to the execution; its rows stay as they were."""
        execution_id = execution.execution_id
        stored = self._stored.pop(execution_id)
        self._changes.pop(execution_id, None)
        self._broken[execution_id] = error
        if stored.version > 0:
            self._parked.append(execution_id)
            park_execution(self._connection, execution_id, error)

    def _revise(self, item: Item, answer: Any) -> Any:
        """If an execution was parked late in the batch, the receipts of its earlier messages change as well."""
        if isinstance(item, Envelope) and item.execution_id in self._broken:
            return Receipt(ReceiptKind.PARKED)
        return answer


def _ending(envelopes: Sequence[Envelope]) -> set[str]:
    """Executions whose scopes are not needed: their first message is a stop, or all their messages only end them."""
    ending = {each.execution_id for each in envelopes if isinstance(each.message, ENDING)}
    if not ending:
        return ending
    first: dict[str, Message] = {}
    for each in envelopes:
        first.setdefault(each.execution_id, each.message)
    stopped = {execution_id for execution_id, message in first.items() if isinstance(message, Stop)}
    going_on = {each.execution_id for each in envelopes if not isinstance(each.message, ENDING)}
    return stopped | (ending - going_on)


def _settled(items: Sequence[Item], answers: Sequence[Any]) -> list[Envelope]:
    """The callbacks that are done: accepted, or refused for good. The others are delivered again later."""
    return [
        item
        for item, answer in zip(items, answers, strict=True)
        if isinstance(item, Envelope)
        and (item.settles is not None or item.settles_invocation is not None)
        and answer.kind not in RETRIED_LATER
    ]


_KINDS = {kind: ReceiptKind[kind.name] for kind in OutcomeKind}
