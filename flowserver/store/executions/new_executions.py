"""What a start creates, before it has a row."""

import msgspec

from flowserver.base.json_values import JsonObject
from flowserver.machine.state import Execution
from flowserver.store.executions.stored_execution import Parent, StoredExecution
from flowserver.store.flows import FlowRow
from flowserver.store.schedules.due_schedules import ScheduleTurn
from flowserver.store.versions.resolving import Resolved


class StartingStep(msgspec.Struct, frozen=True):
    """The attempt of a task step that makes a start."""

    execution_id: str
    scope_id: int
    wait_id: int
    owns: bool
    """Start the execution only while the attempt waits for it, and stop it when the attempt no longer does."""
    numbers_names: bool = False
    """Start it under NAME-2, NAME-3 … if an earlier execution of the same parent has the name."""
    is_retry: bool = False
    """Whether an attempt of the same entry of the step has failed before."""
    has_new_token: bool = False
    """Whether it gets a task token that an execution that runs does not have, so that it must be another one."""


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

    parent: StartingStep | None = None

    def stored(self, flow: FlowRow, resolved: Resolved | None, parent: Parent | None = None) -> StoredExecution:
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
        stored = StoredExecution(execution, flow.flow_id, flow.definition_id, 0, self.input_text, parent=parent)
        if resolved is not None:
            stored.flow_version, stored.flow_alias = resolved.version, resolved.alias
        return stored
