"""The starts of one batch: their flows, names, versions and schedules, read with one statement for each kind."""

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

import msgspec
from sqlalchemy import Connection

from flowserver.engine.commit.batch_items import Envelope, Receipt, ReceiptKind
from flowserver.machine.schedules.state import Schedule
from flowserver.machine.state import Status
from flowserver.store.executions.further_names import further_name
from flowserver.store.executions.lookups import find_names, find_statuses
from flowserver.store.executions.new_executions import NewExecution, StartingStep
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.executions.shown_executions import row_of_new
from flowserver.store.executions.stored_execution import Parent, StoredExecution
from flowserver.store.executions.sub_flows import parents_of_starts
from flowserver.store.flows import FlowRow, find_flows
from flowserver.store.schedules.due_schedules import hold_versions, save_turns
from flowserver.store.versions.resolving import Qualified, Resolved, is_latest, resolve_starts


class Starts:
    """Makes the executions that a batch starts. A later start of the batch finds the name that an earlier one took."""

    def __init__(
        self, connection: Connection, news: Sequence[NewExecution], stored: dict[str, StoredExecution], depth_max: int
    ) -> None:
        """`stored` gets each new execution before its first message."""
        self._connection = connection
        self._stored = stored
        self._depth_max = depth_max
        self._flows: dict[str, FlowRow] = {}
        self._taken: dict[tuple[str, str], tuple[str, Status]] = {}
        self._begun: dict[str, Status] = {}
        self._parents: dict[StartingStep, Parent] = {}
        self._resolved: dict[str, Resolved] = {}
        self._schedule_versions: dict[str, int] = {}
        self._schedules: dict[str, Schedule] = {}
        """Changed by the starts of executions, by the execution's id."""
        if news:
            self._look_up(news)

    def _look_up(self, news: Sequence[NewExecution]) -> None:
        self._flows = find_flows(self._connection, {new.flow_name for new in news})
        asked = [
            (flow.flow_id, new.name)
            for new in news
            if not new.name_is_unique and (flow := self._flows.get(new.flow_name)) is not None
        ]
        self._taken = find_names(self._connection, asked) if asked else {}
        self._begun = find_statuses(self._connection, [new.execution_id for new in news if not new.name_is_unique])
        qualified = [
            Qualified(flow.flow_id, new.qualifier, new.execution_id)
            for new in news
            if new.qualifier is not None and not is_latest(new.qualifier) and (flow := self._flows.get(new.flow_name))
        ]
        self._resolved = resolve_starts(self._connection, qualified) if qualified else {}
        self._parents = parents_of_starts(self._connection, [new.parent for new in news if new.parent is not None])
        turns = [new.turn.before.schedule_id for new in news if new.turn is not None]
        if turns:
            self._schedule_versions = hold_versions(self._connection, turns)

    def start(self, envelope: Envelope, new: NewExecution, tell: Callable[[Envelope], Receipt]) -> Receipt:
        """Make the execution and have `tell` deliver its first message, unless the start is refused."""
        flow = self._flows.get(new.flow_name)
        if flow is None:
            return Receipt(ReceiptKind.NO_FLOW)
        if new.turn is not None and not self._takes_turn(new.execution_id, new.turn.before, new.turn.if_taken):
            return Receipt(ReceiptKind.STALE)
        key = (flow.flow_id, new.name)
        if new.execution_id in self._begun:  # a repeated start whose first commit succeeded
            return Receipt(ReceiptKind.EXISTS, existing=(new.execution_id, self._begun[new.execution_id]), flow=flow)
        parent = None
        if new.parent is not None:
            parent = self._parents.get(new.parent)
            if parent is None:
                return Receipt(ReceiptKind.STALE)
            if parent.depth > self._depth_max:
                return Receipt(ReceiptKind.TOO_DEEP)
        if key in self._taken:
            further = further_name(
                self._connection, flow.flow_id, new, self._taken[key][0], also_taken=self._taken.keys()
            )
            if further is None:
                return Receipt(ReceiptKind.EXISTS, existing=self._taken[key], flow=flow)
            new, key = msgspec.structs.replace(new, name=further), (flow.flow_id, further)
        resolved = None
        if not is_latest(new.qualifier):
            resolved = self._resolved.get(new.execution_id)
            if resolved is None:
                self._schedules.pop(new.execution_id, None)
                return Receipt(ReceiptKind.NO_VERSION)
            flow = replace(flow, definition_id=resolved.definition_id, definition=resolved.definition)
        stored = new.stored(flow, resolved, parent)
        self._stored[new.execution_id] = stored
        receipt = tell(envelope)
        if receipt.kind is ReceiptKind.APPLIED:
            self._taken[key] = (new.execution_id, stored.execution.status)
            if new.turn is not None:
                self._schedules[new.execution_id] = new.turn.after
        return msgspec.structs.replace(receipt, flow=flow, started=row_of_new(stored, flow))

    def save(self, parked: Container[str]) -> None:
        """Save the schedules that made the starts. The schedule of a start that was parked does not change.

        Raises VersionConflict.
        """
        changed = [each for execution_id, each in self._schedules.items() if execution_id not in parked]
        if changed and save_turns(self._connection, changed) < len(changed):
            raise VersionConflict

    def _takes_turn(self, execution_id: str, before: Schedule, changed: Schedule) -> bool:
        """Whether the schedule is as the turn found it; if so, no other start of the batch takes that turn."""
        if self._schedule_versions.get(before.schedule_id) != before.version:
            return False
        self._schedule_versions[before.schedule_id] += 1
        self._schedules[execution_id] = changed
        return True
