"""Items of a batch and their results: messages to executions, other changes, and receipts."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec
from sqlalchemy import Connection

from flowserver.base.json_values import JsonObject
from flowserver.machine.events import Event
from flowserver.machine.messages import DeadlineReached, Message, Stop
from flowserver.machine.state import Execution, Status
from flowserver.store.executions.loading import StoredExecution
from flowserver.store.executions.rows import ExecutionRow
from flowserver.store.flows import FlowRow
from flowserver.store.schedules.turns import ScheduleTurn
from flowserver.store.versions.resolving import Resolved


class ReceiptKind(Enum):
    """How an envelope ended."""

    APPLIED = auto()
    STALE = auto()
    ENDED = auto()
    NOT_NOW = auto()
    EXISTS = auto()
    """A start with a name that is taken."""
    UNKNOWN = auto()
    """No such execution."""
    PARKED = auto()
    """The execution is parked and accepts no messages."""
    NO_FLOW = auto()
    """A start of a flow that does not exist."""
    RUNNING = auto()
    """A redrive of an execution that runs."""
    REPEATED = auto()
    """A redrive under the client token of the execution's last one."""
    REFUSED = auto()
    """A redrive that cannot be made; the receipt says why."""
    NO_VERSION = auto()
    """A start with a version or an alias that does not exist."""


ENDING = (Stop, DeadlineReached)
"""Messages that need only an execution's header and the names of its calls, so they end one with unreadable scopes."""


class Receipt(msgspec.Struct, frozen=True):
    """The result of an envelope.

    `event_id` is the event that records a report, `existing` the execution that has the taken name. A start also has
    the flow, and the execution after its first turn.
    """

    kind: ReceiptKind
    event_id: int = 0
    existing: tuple[str, Status] | None = None
    flow: FlowRow | None = None
    started: ExecutionRow | None = None
    reason: str = ""


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


class NewExecution(msgspec.Struct, frozen=True):
    """The execution that a start creates.

    The batch looks up the flow in its own transaction, so a start never uses a definition that was replaced or a flow
    that was deleted before it.
    """

    execution_id: str
    """The caller chooses it, so that a repeated request starts one execution."""
    flow_name: str
    name: str
    input_text: str = ""
    """JSON text of an object; `""` means no input."""
    input: JsonObject = {}
    """`input_text` parsed, by `Starter.start`."""
    callback_token: str | None = None
    name_is_unique: bool = False
    """The name contains a new UUID, so it cannot be taken."""
    qualifier: str | None = None
    """The version to run, the alias that draws it by `execution_id`, or LATEST, as None: the flow's own definition."""
    turn: ScheduleTurn | None = None
    """The turn of the schedule that makes this start, whose row changes in the same transaction. If another node has
    taken the turn, the start is stale."""

    def stored(self, flow: FlowRow, resolved: Resolved | None) -> StoredExecution:
        """A new execution without a row; the machine sets its instants when it starts."""
        execution = Execution(
            execution_id=self.execution_id,
            flow_name=self.flow_name,
            name=self.name,
            input=self.input,
            started_at=0,
            deadline_at=0,
            callback_token=self.callback_token,
            waiting_steps=0 if flow.on_retries_exhausted == "waitForRedrive" else None,
        )
        stored = StoredExecution(execution, flow.flow_id, flow.definition_id, 0, self.input_text)
        if resolved is not None:
            stored.flow_version, stored.flow_alias = resolved.version, resolved.alias
        return stored


class Tried(msgspec.Struct, frozen=True):
    """What an earlier try of a message returned, whose commit failed or whose answer was lost."""

    receipt: Receipt
    event: Event
    """The last that the try recorded. If the history has it, the try was committed."""


class Envelope(msgspec.Struct, frozen=True):
    """A message and the execution that it is for; a start includes the execution."""

    execution_id: str
    message: Message
    new: NewExecution | None = None
    redrive: RedriveRequest | None = None
    settles: str | None = None
    """The ended execution whose callback this message delivers."""
    settles_invocation: str | None = None
    """The ended asynchronous invocation whose callback this message delivers."""
    lease: str | None = None
    """For the reply of a call: the node that made it. The reply is stale once another node holds the call."""
    tried: Tried | None = None
    """Set for another try of a message that was applied, which must not meet its own effect as another's."""


@dataclass(frozen=True, slots=True)
class Write:
    """Any other change, made in the batch's transaction. If it fails, it fails alone."""

    change: Callable[[Connection], Any]


Item = Envelope | Write
