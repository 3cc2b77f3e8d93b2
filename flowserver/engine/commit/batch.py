"""One batch: many messages, one transaction. Synchronous; runs in the writer's thread.

Loads the executions concerned, lets the machine advance each, saves what changed. An execution that cannot continue
(unreadable rows, an unusable definition, a bug) is parked and the others go on. See also `execution_cache`.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, OperationalError

from flowserver.engine.commit.context import SHARED_BYTES, BatchContext
from flowserver.engine.commit.crash_loop_guard import TooMuchAtOnce
from flowserver.engine.commit.item_loading import load_lists
from flowserver.engine.commit.items import ENDING, Envelope, Item, NewExecution, Receipt, ReceiptKind, Write
from flowserver.engine.commit.turns import history_bytes, make_turns
from flowserver.language.graph import Flow
from flowserver.machine.messages import Continue, Message, Stop, TaskReplied
from flowserver.machine.state import Execution, Status
from flowserver.machine.turn import OutcomeKind
from flowserver.store.cluster.nodes import hold_lease
from flowserver.store.executions.loading import StoredExecution, load_headers
from flowserver.store.executions.reading import find_names, find_statuses, row_of_new
from flowserver.store.executions.saving import Changes, VersionConflict, clear_callback, park_execution, save_changes
from flowserver.store.flows import FlowRow, find_flows
from flowserver.store.invocations.leases import clear_invocation_callbacks
from flowserver.store.sql.prepared import execute_plain

log = logging.getLogger(__name__)

EMPTY_FLOW = Flow(version="v1", lists=())

TOLD_LATER = (ReceiptKind.NOT_NOW, ReceiptKind.PARKED)
"""What a callback meets that its task may still take another time."""


@dataclass(slots=True)
class BatchResult:
    """Per item its receipt, the write's return value, or the write's exception; and what executions changed."""

    answers: list[Any] = field(default_factory=list)
    changes: list[Changes] = field(default_factory=list)
    continuing: list[str] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)
    seconds: float | None = None
    """How long the transaction took; None if there was none that was committed."""
    held_bytes: int = 0
    """Of documents that were read, and of documents and events that were made."""
    steps_gone_on: int = 0
    """Steps of executions that only went on with what was ready."""


class Batch:
    """One transaction's worth of work over an open connection."""

    def __init__(
        self, connection: Connection, workshop: BatchContext, *, headers_only: bool = False, is_shared: bool = False
    ) -> None:
        """With `headers_only` executions are loaded without what only a message that does not end them needs.

        If others share the writer, executions that go on make short turns, and each execution has less of the batch.
        """
        self._connection = connection
        self._headers_only = headers_only
        self._workshop = workshop
        self._environment = workshop.environment()
        self._environment_to_go_on = workshop.environment_to_go_on() if is_shared else self._environment
        self._made_max = workshop.made_bytes_max
        self._again_max = min(SHARED_BYTES, self._made_max) if is_shared else self._made_max
        self._stored: dict[str, StoredExecution] = {}
        self._broken: dict[str, str] = {}
        self._parked: list[str] = []
        self._changes: dict[str, Changes] = {}
        self._more: set[str] = set()
        self._kept: Collection[str] = ()
        self._flows: dict[str, FlowRow] = {}
        self._taken: dict[tuple[str, str], tuple[str, Status]] = {}
        self._begun: dict[str, Status] = {}
        self._ending: set[str] = set()
        self._held = 0
        self._made = 0
        self._made_by: dict[str, int] = {}
        self._left: set[str] = set()
        self._steps_gone_on = 0
        self._may_divide = False

    def run(self, items: Sequence[Item]) -> BatchResult:
        """Do all items in order and save; the caller commits, and only then acts on the result.

        Raises LeaseLost before anything is done if this node was taken for dead; NotMarked and TooMuchAtOnce, having
        the caller roll back.
        """
        hold_lease(self._connection, self._workshop.lease.node_id)
        self._may_divide = len(items) > 1
        envelopes = [item for item in items if isinstance(item, Envelope)]
        news = [envelope.new for envelope in envelopes if envelope.new is not None]
        self._ending = _ending(envelopes)
        self._load([envelope.execution_id for envelope in envelopes if envelope.new is None])
        self._look_up_starts(news)
        answers = self._do_all(items)
        self._left = {item.execution_id for item in items[len(answers) :] if isinstance(item, Envelope)}
        items = items[: len(answers)]
        self._left.difference_update(self._changes)
        answers = [self._revise(item, answer) for item, answer in zip(items, answers, strict=True)]
        changes = [each for each in self._changes.values() if each.is_saved]
        save_changes(self._connection, changes, self._workshop.lease.holder)
        told = _told(items, answers)
        clear_callback(self._connection, [each.settles for each in told if each.settles is not None])
        clear_invocation_callbacks(
            self._connection, [each.settles_invocation for each in told if each.settles_invocation is not None]
        )
        self._workshop.at_work.clear(self._connection, self._workshop.lease.node_id, self._stored.keys() - self._left)
        continuing = [execution_id for execution_id in self._changes if execution_id in self._more]
        return BatchResult(
            answers, changes, continuing, self._parked, held_bytes=self._held, steps_gone_on=self._steps_gone_on
        )

    def settle(self) -> None:
        """The transaction is durable. What goes on at once, or is to be loaded often or at much cost, is kept."""
        self._workshop.at_work.cleared(self._stored.keys() - self._left)
        for changes in self._changes.values():
            changes.stored.version += changes.is_saved
        for execution_id, stored in self._stored.items():
            if stored.parked_error is not None or not stored.execution.is_running:
                continue
            has_calls = self._workshop.lease.node_id in stored.leases.values()
            was_kept = execution_id in self._left and execution_id in self._kept
            if has_calls or was_kept or execution_id in self._more or stored.is_worth_keeping:
                self._workshop.warm.keep(stored)

    def _load(self, execution_ids: list[str]) -> None:
        if not execution_ids:
            return
        warm = self._workshop.warm.take(self._connection, set(execution_ids))
        cold = [execution_id for execution_id in execution_ids if execution_id not in warm]
        self._stored, broken = load_headers(self._connection, cold, bare=self._headers_only)
        if not self._headers_only:
            limits, at_work = self._workshop.limits, self._workshop.at_work
            self._held = load_lists(self._connection, self._stored, broken, self._ending, at_work, limits)
        self._stored |= warm
        self._kept = warm.keys()
        for execution_id, error in broken.items():
            stored = self._stored[execution_id]
            if not stored.execution.is_running or stored.parked_error is not None:
                continue  # nothing goes on with it in any case
            log.error("execution %s is parked: %s", execution_id, error)
            stored.parked_error = error
            self._parked.append(execution_id)
            park_execution(self._connection, execution_id, error)

    def _do_all(self, items: Sequence[Item]) -> list[Any]:
        """Answers to the first items, as many as there is room for."""
        return [self._do(item) for item in takewhile(self._has_room, items)]

    def _has_room(self, item: Item) -> bool:
        made_by = self._made_by.get(item.execution_id, 0) if isinstance(item, Envelope) else 0
        return self._made <= self._made_max and made_by <= self._again_max

    def _do(self, item: Item) -> Any:
        if isinstance(item, Envelope):
            return self._tell(item) if item.new is None else self._start(item, item.new)
        return self._write(item)

    def _look_up_starts(self, news: list[NewExecution]) -> None:
        """The flows to start and the executions that hold the names already, in one statement each."""
        if not news:
            return
        self._flows = find_flows(self._connection, {new.flow_name for new in news})
        asked = [
            (flow.flow_id, new.name)
            for new in news
            if not new.name_is_unique and (flow := self._flows.get(new.flow_name)) is not None
        ]
        self._taken = find_names(self._connection, asked) if asked else {}
        self._begun = find_statuses(self._connection, [new.execution_id for new in news if not new.name_is_unique])

    def _start(self, envelope: Envelope, new: NewExecution) -> Receipt:
        flow = self._flows.get(new.flow_name)
        if flow is None:
            return Receipt(ReceiptKind.NO_FLOW)
        key = (flow.flow_id, new.name)
        if new.execution_id in self._begun:  # the same start again: its first commit came through after all
            return Receipt(ReceiptKind.EXISTS, existing=(new.execution_id, self._begun[new.execution_id]), flow=flow)
        if key in self._taken:
            return Receipt(ReceiptKind.EXISTS, existing=self._taken[key], flow=flow)
        stored = new.stored(flow)
        self._stored[new.execution_id] = stored
        receipt = self._tell(envelope)
        if receipt.kind is ReceiptKind.APPLIED:
            self._taken[key] = (new.execution_id, stored.execution.status)
        return msgspec.structs.replace(receipt, flow=flow, started=row_of_new(stored, flow))

    def _write(self, write: Write) -> Any:
        execute_plain(self._connection, "SAVEPOINT item")  # SQLAlchemy's own take forty times as long
        try:
            answer = write.change(self._connection)
            execute_plain(self._connection, "RELEASE SAVEPOINT item")
            return answer
        except OperationalError:  # the transaction itself may be gone, and all that came before it in this batch
            raise
        except Exception as error:  # it fails alone: the answer carries it to whoever asked
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
        try:
            return self._advance(stored, envelope.message)
        except (DBAPIError, TooMuchAtOnce, VersionConflict):  # the transaction is lost, and what came before in it
            raise
        except Exception as error:  # our bug or a damaged record: this execution stops here, the others go on
            log.exception("execution %s is parked", envelope.execution_id)
            self._park(stored.execution, f"{type(error).__name__}: {error}")
            return Receipt(ReceiptKind.PARKED)

    def _is_leased(self, envelope: Envelope, stored: StoredExecution) -> bool:
        """Whether a reply comes from the node that the call is leased to, and from this life of it."""
        if envelope.lease is None or not isinstance(envelope.message, TaskReplied):
            return True
        holder = stored.leases.get(envelope.message.scope_id, envelope.lease)
        return envelope.lease == holder == self._workshop.lease.node_id

    def _advance(self, stored: StoredExecution, message: Message) -> Receipt:
        flow = EMPTY_FLOW  # ending and being over need none, and must work where the definition is what is broken
        if stored.execution.is_running and not isinstance(message, ENDING):
            flow = self._workshop.definitions.get(self._connection, stored.definition_id)
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
            self._more.discard(execution_id)  # it went on with all that was ready
        return Receipt(_KINDS[turns[0].outcome.kind], turns[0].outcome.event_id)

    def _grow(self, execution_id: str, document_bytes: int, history_bytes: int, *, is_made: bool) -> None:
        """Count what the batch holds and what it made. Bytes that an execution lets go make no room for other items:
        something had to be written for them. What a stop makes is small and takes no room from other items.
        """
        self._held += document_bytes + history_bytes
        if is_made:
            made = max(document_bytes, 0) + history_bytes
            self._made += made
            self._made_by[execution_id] = self._made_by.get(execution_id, 0) + made
        if self._held > self._workshop.limits.execution_data_bytes_max and self._may_divide:
            raise TooMuchAtOnce

    def _park(self, execution: Execution, error: str) -> None:
        """Forget everything this batch did to the execution and keep what the database has."""
        execution_id = execution.execution_id
        stored = self._stored.pop(execution_id)
        self._changes.pop(execution_id, None)
        self._broken[execution_id] = error
        if stored.version > 0:
            self._parked.append(execution_id)
            park_execution(self._connection, execution_id, error)

    def _revise(self, item: Item, answer: Any) -> Any:
        """An execution parked late in the batch takes the receipts of its earlier messages with it."""
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


def _told(items: Sequence[Item], answers: Sequence[Any]) -> list[Envelope]:
    """The callbacks that were taken, or never will be; one that could not be taken now is told again later."""
    return [
        item
        for item, answer in zip(items, answers, strict=True)
        if isinstance(item, Envelope)
        and (item.settles is not None or item.settles_invocation is not None)
        and answer.kind not in TOLD_LATER
    ]


_KINDS = {kind: ReceiptKind[kind.name] for kind in OutcomeKind}
