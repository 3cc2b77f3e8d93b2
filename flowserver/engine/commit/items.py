"""What the writer is asked for, and its answers: messages for executions, other changes, and receipts."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec
from sqlalchemy import Connection

from flowserver.base.json_values import JsonObject
from flowserver.machine.messages import DeadlineReached, Message, Stop
from flowserver.machine.state import Execution, Status
from flowserver.store.executions.loading import StoredExecution
from flowserver.store.executions.reading import ExecutionRow
from flowserver.store.flows import FlowRow


class ReceiptKind(Enum):
    """What became of an envelope."""

    APPLIED = auto()
    STALE = auto()
    ENDED = auto()
    NOT_NOW = auto()
    EXISTS = auto()
    """A start under a name that is taken."""
    UNKNOWN = auto()
    """No such execution."""
    PARKED = auto()
    """The execution is set aside and takes no messages."""
    NO_FLOW = auto()
    """A start of a flow that does not exist."""


ENDING = (Stop, DeadlineReached)
"""Messages that end an execution from its header and the names of its calls, so that one ends that cannot be read."""


class Receipt(msgspec.Struct, frozen=True):
    """What became of an envelope: the event that records a report, the execution that holds a taken name.

    For a start also the flow, and the execution as its first turn left it.
    """

    kind: ReceiptKind
    event_id: int = 0
    existing: tuple[str, Status] | None = None
    flow: FlowRow | None = None
    started: ExecutionRow | None = None


class NewExecution(msgspec.Struct, frozen=True):
    """What a start brings along; `input` is `input_text` parsed (`""` stands for no input).

    The flow is looked up in the batch's own transaction, so a start never meets a definition that was replaced or a
    flow that was deleted before it.
    """

    execution_id: str
    flow_name: str
    name: str
    input_text: str
    input: JsonObject
    callback_token: str | None = None
    name_is_unique: bool = False
    """The name holds a fresh UUID, so nobody can have taken it."""

    def stored(self, flow: FlowRow) -> StoredExecution:
        """A fresh execution that has no row yet; the machine sets its instants when it starts it."""
        execution = Execution(
            execution_id=self.execution_id,
            flow_name=self.flow_name,
            name=self.name,
            input=self.input,
            started_at=0,
            deadline_at=0,
            callback_token=self.callback_token,
        )
        return StoredExecution(execution, flow.flow_id, flow.definition_id, 0, self.input_text)


class Envelope(msgspec.Struct, frozen=True):
    """A message and the execution it is for; a start brings the execution along."""

    execution_id: str
    message: Message
    new: NewExecution | None = None
    settles: str | None = None
    """The ended execution whose callback this message delivers."""
    settles_invocation: str | None = None
    """The like, for an asynchronous invocation."""
    lease: str | None = None
    """For the reply of a call: the node that made it. It counts only while the call is still that node's."""


@dataclass(frozen=True, slots=True)
class Write:
    """Any other change, made in the batch's transaction but failing alone."""

    change: Callable[[Connection], Any]


Item = Envelope | Write
