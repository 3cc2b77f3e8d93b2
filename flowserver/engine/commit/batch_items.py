"""Items of a batch and their results: messages to executions, other changes, and receipts."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import msgspec
from sqlalchemy import Connection

from flowserver.base.nonces import Nonce
from flowserver.machine.events import Event
from flowserver.machine.messages import DeadlineReached, Message, Stop
from flowserver.machine.state import Status
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.redriving import RedriveRequest
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.flows import FlowRow


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
    """A redrive or a report that cannot be made; the receipt says why."""
    NO_VERSION = auto()
    """A start with a version or an alias that does not exist."""
    TAKEN = auto()
    """A step takes up an execution that has succeeded, or runs: it gets that end."""
    TOO_DEEP = auto()
    """A start by a step of an execution that has too many ancestors."""


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
    settles_token: str | None = None
    """The token of that callback: a later one stays due."""
    settles_invocation: str | None = None
    """The ended asynchronous invocation whose callback this message delivers."""
    lease: str | None = None
    """For the reply of a call: the node that made it. The reply is stale once another node holds the call."""
    tried: Tried | None = None
    """Set for another try of a message that was applied, which must not meet its own effect as another's."""
    nonce: Nonce | None = None
    """That of the signed request that submits it. If it was used before, nothing is done: SignatureNonceUsed."""
    caller: str = ""
    """The access key of the request that submits it; "" if it has none."""
    if_ownerless: bool = False
    """Stale unless the execution is a sub-flow that is marked to be stopped: a redrive may have taken the mark away."""


class Write(msgspec.Struct, frozen=True):
    """Any other change, made in the batch's transaction. If it fails, it fails alone."""

    change: Callable[[Connection], Any] | None
    """None for a nonce alone."""
    nonce: Nonce | None = None
    caller: str = ""
    """Both as of an `Envelope`."""


Item = Envelope | Write
