"""Asynchronous invocations under any sequence of steps, stops, crashes, lost answers and joining or leaving nodes.

Two nodes process what they hold, from memory that may be out of date. A transaction may be rolled back, as by a crash
before its commit, or succeed without an answer and be retried. A node may be declared dead, rightly or not. In every
sequence an invocation makes only legal transitions, and finally ends.
"""

from collections.abc import Sequence
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)
from sqlalchemy import delete, select

from flowserver.machine.invocations.lifecycle import (
    AttemptBegan,
    AttemptFailed,
    AttemptSucceeded,
    CallEnded,
    Dequeued,
    FunctionUnavailable,
    InvocationMessage,
    StopAsked,
)
from flowserver.machine.invocations.states import LEGAL, InvocationSettings, InvocationStatus
from flowserver.store.cluster.nodes import LeaseLost, hold_lease, register_node, remove_node
from flowserver.store.invocations.leases import release_all_but, take_over_due, take_over_invocations
from flowserver.store.invocations.row_changes import change_by, save_in
from flowserver.store.invocations.rows import InvocationChanged, InvocationRow, find_invocations, read_invocation
from flowserver.store.invocations.stop_marks import mark_unwanted, unwanted_invocations
from flowserver.store.invocations.stops import stop_all, stop_named
from flowserver.store.invocations.submissions import Submission, insert_in
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.queue_tables import deliveries
from flowserver.store.schema.tables import nodes
from flowserver.store.sql.database import Database
from tests.store.rows import invocation_row
from tests.support.stateful import walk

S = InvocationStatus
NODES = ("a", "b")
QUEUE = "acs:mns:::queues/results"

NEXT: dict[InvocationStatus, Sequence[Sequence[InvocationMessage]]] = {
    S.ENQUEUED: [
        (Dequeued(), AttemptBegan()),
        (Dequeued(),),
        (Dequeued(), FunctionUnavailable("FC.FunctionNotFound", "gone")),
    ],
    S.DEQUEUED: [(AttemptBegan(),), (FunctionUnavailable("FC.FunctionNotStarted", "no"),)],
    S.RUNNING: [
        (AttemptSucceeded(b"{}", 5),),
        (AttemptFailed("KeyError", "why", 5),),
        (StopAsked(),),
        (AttemptBegan(),),
    ],
    S.RETRYING: [(Dequeued(), AttemptBegan()), (AttemptBegan(),)],
    S.STOPPING: [(CallEnded(),), (AttemptSucceeded(b"{}", 5),)],
}
"""The changes that a node may make, by the state that it believes in; the first leads to an end."""


class Crash(Exception):
    """Before the commit."""


class InvocationMachine(RuleBasedStateMachine):
    """Nodes with their memory, over one database."""

    database: Database
    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.numbers = count()
        self.held: dict[str, dict[str, InvocationRow]] = {node: {} for node in NODES}
        self.seen: dict[str, InvocationRow] = {}
        self.attempts: dict[str, int] = {}

    @initialize()
    def begin(self) -> None:
        with self.database.write() as connection:
            for table in (invocations, deliveries, nodes):
                connection.execute(delete(table))
            for node in NODES:
                register_node(connection, node, node, self.now)

    # Actions of nodes

    @rule(
        target=keys,
        node=st.sampled_from(NODES),
        retries=st.integers(0, 2),
        age=st.sampled_from([1, 86_400]),
        is_again=st.booleans(),
    )
    def submit(self, node: str, retries: int, age: int, is_again: bool) -> Any:
        key = f"k{next(self.numbers)}"
        given = InvocationSettings(retries=retries, age_seconds=age, on_success=QUEUE, on_failure=QUEUE)
        row = invocation_row(key, node, settings=given, created_at=self.now)
        try:
            for _ in range(1 + is_again):  # its answer was lost
                with self.database.write() as connection:
                    hold_lease(connection, node)
                    assert insert_in(connection, [Submission(row)]) == [row]
        except LeaseLost:
            self.held[node].clear()
            return multiple()
        self.held[node][key] = row
        return key

    @rule(pick=st.integers(0, 9), way=st.integers(0, 3), fate=st.sampled_from(["done", "done", "crash", "lost"]))
    def go_on(self, pick: int, way: int, fate: str) -> None:
        pairs = [(node, key) for node in NODES for key in self.held[node]]
        if pairs:
            self.make(*pairs[pick % len(pairs)], way, fate)

    @rule(pick=st.integers(0, 9), way=st.integers(0, 3))
    def go_on_well(self, pick: int, way: int) -> None:
        """Usually no fault."""
        self.go_on(pick, way, "done")

    def make(self, node: str, key: str, way: int, fate: str) -> None:
        row = self.held[node][key]
        ways = NEXT[row.state.status]
        change = change_by(row, ways[way % len(ways)], self.now)
        try:
            for _ in range(1 + (fate == "lost")):
                with self.database.write() as connection:
                    hold_lease(connection, node)
                    save_in(connection, [change])
                    if fate == "crash":
                        raise Crash
        except Crash:
            return
        except LeaseLost:  # it learns that it was declared dead
            self.held[node].clear()
        except InvocationChanged:  # by another node, or by itself before the answer was lost
            self.load(node, [key])
        else:
            self.remember(node, change.after)

    @rule(node=st.sampled_from(NODES), what=st.sampled_from(["is dead", "is taken for dead", "starts", "sweeps"]))
    def comes_or_goes(self, node: str, what: str) -> None:
        match what:
            case "starts":
                self.starts_anew(node)
            case "sweeps":
                self.sweep(node, 2)
            case _:
                with self.database.write() as connection:
                    remove_node(connection, node)
                if what == "is dead":
                    self.held[node].clear()

    def starts_anew(self, node: str) -> None:
        """The node continues under another id, so it holds nothing."""
        with self.database.write() as connection:
            remove_node(connection, node)
            release_all_but(connection, node, [])
            register_node(connection, node, node, self.now)
        self.held[node].clear()

    def sweep(self, node: str, limit: int) -> None:
        try:
            with self.database.write() as connection:
                hold_lease(connection, node)
                taken = take_over_invocations(connection, node, limit)
                taken += take_over_due(connection, node, self.now, limit)
        except LeaseLost:
            self.held[node].clear()
        else:
            self.load(node, [each.invocation_key for each in taken])

    # Actions of others

    @rule(key=keys, fate=st.sampled_from(["done", "crash"]))
    def stop(self, key: str, fate: str) -> None:
        try:
            with self.database.write() as connection:
                assert stop_named(connection, "s", "f", key, self.now, None) is not None
                if fate == "crash":
                    raise Crash
        except Crash:
            pass

    @rule(key=keys, at_once=st.booleans())
    def give_up(self, key: str, at_once: bool) -> None:
        """A turn requests its stop; the turn's node may die before it stops it."""
        with self.database.write() as connection:
            mark_unwanted(connection, [key])
        if at_once:
            self.stop_unwanted()

    def stop_unwanted(self) -> None:
        with self.database.write() as connection:
            stop_all(connection, unwanted_invocations(connection, 10), self.now)

    @rule(ms=st.sampled_from([1, 499, 500, 1_000, 60_000]))
    def wait(self, ms: int) -> None:
        self.now += ms

    # Invariants

    @invariant()
    def only_legal_ways_are_taken_and_none_is_taken_back(self) -> None:
        rows = self.rows()
        assert rows.keys() >= self.seen.keys(), "every submitted invocation exists"
        for key, row in rows.items():
            state, before = row.state, self.seen.get(key)
            statuses = [event.status for event in state.events]
            assert set(pairwise([None, *statuses])) <= LEGAL
            assert statuses[-1] is state.status
            if before is not None:
                assert state.events[: len(before.state.events)] == before.state.events
                assert state.attempt >= before.state.attempt
                assert not before.state.is_over or row == before, "an ended invocation stays ended"
            reasons = [state.is_over, state.wake_at is not None, row.node_id is not None]
            assert sum(reasons) == 1, "it has ended, pauses, or is held by a node"
        self.seen = rows

    @invariant()
    def every_end_leaves_one_result(self) -> None:
        ended = [key for key, row in self.rows().items() if row.state.is_over]
        with self.database.read() as connection:
            left = connection.execute(select(deliveries.c.delivery_id)).scalars().all()
        assert sorted(left) == sorted(ended)

    def teardown(self) -> None:
        """All faults are over: every invocation left reaches its end."""
        for node in NODES:
            self.starts_anew(node)
        for _ in range(200):
            self.now += 60_000
            self.stop_unwanted()
            self.sweep("a", 10)
            if all(row.state.is_over for row in self.rows().values()):
                break
            for key in list(self.held["a"]):
                self.make("a", key, 0, "done")
        self.only_legal_ways_are_taken_and_none_is_taken_back()
        assert [row.state.status for row in self.seen.values() if not row.state.is_over] == []
        self.every_end_leaves_one_result()

    # Implementation

    def rows(self) -> dict[str, InvocationRow]:
        with self.database.read() as connection:
            rows = [read_invocation(row) for row in connection.execute(select(invocations))]
        return {row.invocation_key: row for row in rows}

    def load(self, node: str, keys: list[str]) -> None:
        with self.database.read() as connection:
            found = find_invocations(connection, keys)
        for key in keys:
            self.remember(node, found[key])

    def remember(self, node: str, row: InvocationRow) -> None:
        """For as long as the node holds it. A call that it makes then has a new number."""
        key, state = row.invocation_key, row.state
        if row.node_id != node or state.is_over:
            self.held[node].pop(key, None)
            return
        known = self.held[node].get(key)
        self.held[node][key] = row
        has_begun = state.status is S.RUNNING and (known is None or known.state.attempt < state.attempt)
        if has_begun and known is not None:
            assert state.attempt > self.attempts.get(key, 0), "an attempt number was reused"
            self.attempts[key] = state.attempt


@pytest.mark.slow
def test_invocations_make_only_legal_transitions_through_any_crash(database: Database) -> None:
    walk(InvocationMachine, database, walks=40, steps=40)
