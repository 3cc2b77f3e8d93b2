"""What the sub-flow steps do that a redrive runs again at once: found out by its first turn, made in memory.

The turn is the machine's, and names are chosen as a start chooses them, so the redrive does the same unless something
changes in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
from sqlalchemy import Connection

from flowserver.base.errors import FlowNotExists, InvalidArgument
from flowserver.base.json_parameters import parse_input
from flowserver.base.names import check_execution_name, is_name
from flowserver.engine.commit.batch_items import Envelope, Receipt, ReceiptKind
from flowserver.engine.commit.batch_starts import Starts
from flowserver.engine.executions.sub_flow_starts import new_sub_flow, started_flow
from flowserver.language.graph import ActionTarget, Flow, Pattern
from flowserver.machine.advance import advance
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.mappings import Environment
from flowserver.machine.messages import Redrive, Start
from flowserver.machine.redrive import finished_items_needed
from flowserver.machine.state import Status
from flowserver.machine.step_paths import path_of
from flowserver.machine.versions.routing import is_qualifier, is_version, no_version, version_in
from flowserver.store.definition_cache import DefinitionCache, DefinitionUnusable
from flowserver.store.executions.continued_children import EarlierChild, choose_children, earlier_children
from flowserver.store.executions.kept_scopes import load_kept
from flowserver.store.executions.loading import load_finished, load_scopes, read_header
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.redrive_refusals import why_not, why_not_kept, why_not_waiting
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.flows import find_flows
from flowserver.store.versions.aliases import find_alias
from flowserver.store.versions.resolving import is_latest
from flowserver.store.versions.versions import find_version

Does = Literal["continues", "starts", "joins", "fails"]

PLANNED_MAX: Final = 100
"""Sub-flow steps of a plan."""


@dataclass(frozen=True, slots=True)
class PlannedChild:
    """What a sub-flow step does when a redrive runs it again."""

    parent: str
    """FLOW/NAME of the execution whose step it is: the redriven one, or a continued one below it."""
    path: str
    does: Does
    child: str | None
    """FLOW/NAME of the execution that it continues, starts, or finds running; None if it fails."""
    reason: str = ""
    """Why the execution of the last attempt is not continued, or the error with which the step fails."""


class PlannedChildren:
    """Finds out what the steps do, down to the deepest execution that is continued."""

    def __init__(self, connection: Connection, environment: Environment, *, is_owned: bool) -> None:
        """`is_owned`: whether the server's setting is that steps own their sub-flows."""
        self.found: list[PlannedChild] = []
        self._connection = connection
        self._environment = environment
        self._limits = environment.limits
        self._is_owned = is_owned
        self._definitions = DefinitionCache()
        self._bytes = 0

    def look(self, stored: StoredExecution, flow: Flow, message: Redrive, *, anew: bool) -> None:
        """Make the first turn of a redrive whose plan is made. The execution is useless afterwards."""
        self._look(stored, flow, message, anew=anew, depth=0)

    def _look(self, stored: StoredExecution, flow: Flow, message: Redrive, *, anew: bool, depth: int) -> None:
        execution, was_running = stored.execution, stored.execution.is_running
        earlier = earlier_children(self._connection, execution, self._limits)
        choose_children(self._connection, execution, self._limits, anew=anew)
        try:
            needed = finished_items_needed(execution, message)
            load_finished(self._connection, stored, needed, are_kept=not was_running)
        except ValueError:
            return  # a damaged row: the redrive is refused
        turn = advance(flow, execution, message, self._environment)
        caller = Caller(execution.execution_id, execution.flow_name, execution.name)
        starts: list[tuple[str, InvokeTask, NewExecution, str]] = []
        for command in turn.commands:
            if not isinstance(command, InvokeTask) or command.scope_id not in execution.scopes:
                continue
            flow_name, before = started_flow(command), earlier.get(command.scope_id)
            path = path_of(flow, execution, execution.scopes[command.scope_id])
            if command.continues_child and before is not None:
                self._continue(f"{caller.flow_name}/{caller.execution_name}", path, before, depth)
            elif flow_name is not None:
                is_owned = command.child_lifecycle == "owned" or (self._is_owned and command.child_lifecycle is None)
                owned = is_owned and command.pattern is Pattern.SYNC
                new = new_sub_flow(caller, command, flow_name, owns=owned, numbers_names=is_owned)
                starts.append((path, command, new, "" if before is None or anew else before.why_not or ""))
        self._start(f"{caller.flow_name}/{caller.execution_name}", starts)

    def _add(self, planned: PlannedChild) -> None:
        if len(self.found) < PLANNED_MAX:
            self.found.append(planned)

    def _continue(self, parent: str, path: str, before: EarlierChild, depth: int) -> None:
        child = read_header(self._connection, before.execution_id)
        reason = "it is gone" if child is None else self._load(child)
        if child is None or reason is not None:
            self._add(PlannedChild(parent, path, "fails", None, f"FnF.ExecutionNotRedrivable: {reason}"))
            return
        self._add(PlannedChild(parent, path, "continues", before.path))
        self._bytes += child.execution.document_bytes
        goes_on = child.execution.is_running and not child.execution.waiting_steps
        if goes_on or child.execution.status is Status.SUCCEEDED or depth >= self._limits.sub_flow_depth_max:
            return
        if len(self.found) < PLANNED_MAX and self._bytes < self._limits.bulk_redrive_bytes_max:
            flow = self._definitions.get(self._connection, child.definition_id)
            self._look(child, flow, Redrive(), anew=False, depth=depth + 1)

    def _load(self, child: StoredExecution) -> str | None:
        """Add the scopes with which a child goes on; or why it cannot."""
        execution = child.execution
        if execution.status is Status.SUCCEEDED:
            return None
        if execution.is_running:
            broken: dict[str, str] = {}
            load_scopes(self._connection, [child], broken)
            waits = why_not_waiting(execution, self._limits) if execution.waiting_steps else None
            return broken.get(execution.execution_id) or waits
        reason = why_not(child, self._limits, is_taken_up=True) or load_kept(self._connection, child)
        try:
            self._definitions.get(self._connection, child.definition_id)
        except (DefinitionUnusable, LookupError) as error:
            return f"its state cannot be used: {error}"
        return reason or why_not_kept(execution, self._limits)

    def _start(self, parent: str, starts: list[tuple[str, InvokeTask, NewExecution, str]]) -> None:
        # No scope waits for these attempts, and a redriven execution numbers the names of its sub-flows.
        news = [
            msgspec.structs.replace(
                new,
                qualifier=None,
                parent=new.parent and msgspec.structs.replace(new.parent, owns=False, is_retry=True),
            )
            for _, _, new, _ in starts
        ]
        made = Starts(
            self._connection, [each for each in news if is_name(each.flow_name)], {}, self._limits.sub_flow_depth_max
        )
        for (path, command, new, reason), asked in zip(starts, news, strict=True):
            planned = next(self._planned(command, new, asked, made), None)
            error = planned if isinstance(planned, str) else None
            if error is not None or planned is None or isinstance(planned, str):
                prefix = "fnf" if isinstance(command.target, ActionTarget) else "FnF"
                self._add(PlannedChild(parent, path, "fails", None, f"{prefix}.{error}"))
            else:
                does, name = planned
                self._add(PlannedChild(parent, path, does, f"{new.flow_name}/{name}", reason))

    def _planned(
        self, command: InvokeTask, new: NewExecution, asked: NewExecution, made: Starts
    ) -> Iterator[tuple[Does, str] | str]:
        """The outcome of a start with its name, or the code of its error. In the order of the start's own checks."""
        try:
            if new.name != new.execution_id:
                check_execution_name(new.name)
            if is_name(new.flow_name) and (new.qualifier is None or is_qualifier(new.qualifier)):
                parse_input(new.input_text, self._limits)
        except InvalidArgument as error:
            yield error.code
        if not is_name(new.flow_name):
            yield FlowNotExists.code
        receipt = made.start(
            Envelope(asked.execution_id, Start(), new=asked), asked, lambda _: Receipt(ReceiptKind.APPLIED)
        )
        if receipt.kind is ReceiptKind.NO_FLOW:
            yield FlowNotExists.code
        if receipt.kind is ReceiptKind.TOO_DEEP:
            yield "SubFlowTooDeep"
        if receipt.kind is ReceiptKind.EXISTS and receipt.existing is not None:
            if command.pattern is not Pattern.SYNC and receipt.existing[1] is Status.RUNNING:
                yield "joins", new.name
            yield "ExecutionAlreadyExists"
        if new.qualifier is not None and not self._has_version(new):
            yield no_version(new.flow_name, new.qualifier).code
        yield "starts", new.name if receipt.started is None else receipt.started.name

    def _has_version(self, new: NewExecution) -> bool:
        qualifier = new.qualifier or ""
        if is_latest(new.qualifier):
            return True
        flow = find_flows(self._connection, {new.flow_name}).get(new.flow_name)
        if flow is None or not is_qualifier(qualifier):
            return False
        if is_version(qualifier):
            version = version_in(qualifier)
            return version is not None and find_version(self._connection, flow.flow_id, version) is not None
        return find_alias(self._connection, flow.flow_id, qualifier) is not None
