"""A world: many executions and two nodes over one database, from the first start to the last end.

Its number and seed determine everything: which node works next, on what, and which faults happen.
"""

from collections import Counter
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

from sqlalchemy.exc import IntegrityError

from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.batch_context import MADE_BYTES, BatchContext
from flowserver.engine.commit.batch_items import Envelope, ReceiptKind
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.engine.commit.fair_queue import BATCH_MAX
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.language.graph import Flow
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.messages import DeadlineReached
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.loading import load_executions
from tests.simulation import leases
from tests.simulation.case import NOW_MS, Plan, make_cases
from tests.simulation.environment import Environment, Request
from tests.simulation.expected_losses import ExpectedLosses
from tests.simulation.fault_rates import Crash, Fault, FaultRates
from tests.simulation.node import InboxItem, Node, Tokens
from tests.simulation.redrives import Redrives, insert_flows
from tests.simulation.schedules import Schedules
from tests.simulation.shared_database import SharedDatabase
from tests.simulation.stray_messages import StrayMessages, is_old_report, is_redrive, may_come_twice, old_reports_apart
from tests.simulation.timeline import Timeline
from tests.simulation.witness import REDRIVES_MAX, Run, Violation, Witness
from tests.support.clock import ManualClock

BUSY = 250
"""The number of parcels at which the nodes count as busy: no more executions start, and time does not advance."""

TAKEN = (1, 8, 64, 200, 200, 200, 200, 200)
"""The largest number of parcels in a batch."""

MADE_BYTES_MAX = (500, 5_000, MADE_BYTES)
"""The work at which a node's batch stops and leaves its remaining items to another batch."""

SMALL = 8
"""The largest number of parcels in a batch that is to be split."""

HARMLESS = (
    ReceiptKind.STALE,
    ReceiptKind.ENDED,
    ReceiptKind.NOT_NOW,
    ReceiptKind.EXISTS,
    ReceiptKind.RUNNING,
    ReceiptKind.REPEATED,
    ReceiptKind.REFUSED,
)
ROUNDS_MAX = 20_000


def _no_pause() -> None:
    """Replaces the pauses of reads beside a writer: here one thread reads and writes, so it would wait for itself."""


class World:
    """One running world."""

    def __init__(
        self,
        plan: Plan,
        database: SharedDatabase,
        fault_rates: FaultRates,
        *,
        compares: bool = True,
        share: float = 1.0,
    ) -> None:
        """`compares`: whether outcomes are compared with the reference. A `share` below 1 makes a shorter, different
        world.
        """
        self.plan = plan
        self.database = database
        self.clock = ManualClock(NOW_MS)
        self.compiled: dict[str, Flow] = {}
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._random = Random(f"{plan.seed}+{plan.number}")
        self._fault_rates = fault_rates
        self._compares = compares
        self._cases = list(make_cases(plan, fault_rates.interruption, share))
        self._tokens = Tokens(b"the simulation's key")
        self.witness = Witness(database, self._random, fault_rates.deep_check)
        self.witness.compares = compares
        redrives = Redrives(database, self._random, plan.limits, self._tokens)
        self._environment = Environment(
            self.witness, self.clock, plan.limits, self._tokens, self._random, fault_rates, redrives
        )
        self._strays = StrayMessages(self.witness, self.clock, self._random, fault_rates)
        self._timeline = Timeline(database, self.clock, self.witness, self._random)
        self._losses = ExpectedLosses()
        self._names = count(1)
        self._dying: list[str] = []
        """Crashed nodes whose crash has not been detected yet."""
        self._nodes: list[Node] = []

    def run(self) -> None:
        """Run to the last end; raises AssertionError with the cause."""
        with patch("flowserver.store.executions.history.yield_to_writer", _no_pause):
            self._run()

    def _run(self) -> None:
        self._begin()
        for _ in range(ROUNDS_MAX):
            if self._is_over():
                break
            self._round()
        else:
            raise AssertionError("the world does not end")
        self.witness.check_all_ended(self._compares)
        self._schedules.check()

    def _begin(self) -> None:
        self.database.wipe()
        self.database.next_fault = self._next_fault
        self.database.witness = self.witness.committed
        with self.database.read() as connection:
            insert_flows(connection, self.plan)
        self._schedules = Schedules(self.plan, self.database, self.witness, self._random)
        self._nodes = [self._new_node(), self._new_node()]
        for case in self._cases:
            self._environment.start(case)

    def _new_node(self) -> Node:
        node = Node(self, leases.NumberedLease(lambda: f"n{next(self._names)}"))
        leases.join(self.database, node.lease.node_id, self.clock.now_ms())
        return node

    # What nodes need

    def batch_context(self, lease: Lease, definitions: DefinitionCache) -> BatchContext:
        warm = ExecutionCache(self.plan.limits.cached_executions_bytes_max)
        batch_context = BatchContext(
            self.clock, self.plan.limits, self.plan.missing_source, self._tokens, lease, definitions, warm
        )
        made_bytes_max = self._random.choice(MADE_BYTES_MAX) if self._fault_rates.faults else MADE_BYTES
        return replace(batch_context, made_bytes_max=made_bytes_max)

    def dispatcher(self, lease: Lease) -> Dispatcher:
        return self._environment.dispatcher(lease)

    def call(self, node: Node, caller: Caller, command: InvokeTask) -> InboxItem:
        return self._environment.call(node, caller, command)

    def is_cancelled(self) -> bool:
        return not self._chance(self._fault_rates.uncancelled)

    # A round

    def _round(self) -> None:
        self._interrupt()
        self._redrive()
        self._hand_over_requests()
        node = self._random.choice(self._nodes)
        if not node.inbox:
            node = self._other(node)
        if self._chance(0.5 if self._losses.needs_sweep else self._fault_rates.sweep):
            self._sweep(only_own_share=self._chance(0.5))
        if self._waiting() < BUSY and self._chance(0.2):
            self._timeline.advance(self._nodes)
        if not node.inbox:
            self._idle()
        else:
            if self._chance(self._fault_rates.declared_dead):
                self._declare_dead(node)
            self._step(node, conflict=self._chance(self._fault_rates.conflict))

    def _waiting(self) -> int:
        return sum(len(node.inbox) for node in self._nodes)

    def _other(self, node: Node) -> Node:
        return self._nodes[1 - self._nodes.index(node)]

    def _hand_over_requests(self) -> None:
        """Clients send their requests to one of the nodes, some later than others."""
        waiting, self._environment.requests = self._environment.requests, []
        room = BUSY - self._waiting()
        for request in waiting:
            room -= request.is_start
            if (request.is_start and room < 0) or not self._chance(0.7):
                self._environment.requests.append(request)
                continue
            parcel = request.make()
            if parcel is not None:
                self._expect_answer(request, parcel)
                self._random.choice(self._nodes).inbox.append(parcel)

    def _expect_answer(self, request: Request, parcel: InboxItem) -> None:
        def again(answer: Any = None) -> None:
            kind = getattr(answer, "kind", None)
            assert kind is not ReceiptKind.REFUSED or "history" in answer.reason, answer.reason
            is_redriven_later = request.is_redrive and kind is ReceiptKind.NOT_NOW
            if answer is None or isinstance(answer, Exception) or is_redriven_later:
                self._environment.requests.append(request)

        parcel.then = again
        parcel.lost = again

    def _step(self, node: Node, *, conflict: bool = False) -> None:
        """One batch of the node, from loading to the work after its commit."""
        parcels = self._take(node, SMALL if conflict else BATCH_MAX)
        if not parcels:
            return
        items = [parcel.item for parcel in parcels if parcel.item is not None]
        if conflict and not any(is_old_report(parcel) or is_redrive(parcel) for parcel in parcels):
            self._commit_in_between(node, items)
        if node not in self._nodes:
            return
        self.witness.node_id = node.lease.node_id
        try:
            results = node.writer.commit(items)
        except Crash as crash:
            self._crash(node, parcels, crash)
            return
        answers = []
        self.counts["conflicts"] += node.writer.conflicts
        self.counts["lost leases"] += node.writer.lost_leases
        node.writer.conflicts = node.writer.lost_leases = 0
        for result in results:
            node.committed(result)
            answers += result.answers
        if len(results) > 1 or isinstance(answers[0], Exception):
            self._losses.suspect(parcels)
        for parcel, answer in zip(parcels, answers, strict=False):
            self._answer(node, parcel, answer)
        left = parcels[len(answers) :]
        self.counts["left for another batch"] += len(left)
        node.inbox += left

    def _answer(self, node: Node, parcel: InboxItem, answer: Any) -> None:
        item = parcel.item
        assert not isinstance(answer, IntegrityError), f"{item} must be refused for its timing only"
        is_foreign = isinstance(item, Envelope) and item.lease not in (None, node.lease.node_id)
        if (parcel.is_harmless or is_foreign) and not isinstance(answer, Exception):
            assert answer.kind in HARMLESS, f"{item} had an effect: {answer.kind}"
        elif isinstance(parcel.item, Envelope) and not isinstance(answer, Exception):
            self._remember(parcel, parcel.item, answer.kind)
        if parcel.then is not None:
            parcel.then(answer)
        elif isinstance(answer, Exception):
            self._losses.suspect([parcel])

    def _remember(self, parcel: InboxItem, envelope: Envelope, answer: ReceiptKind) -> None:
        """Remember it for stray copies; but a copy of a redrive that was put off would take effect."""
        if answer is not ReceiptKind.NOT_NOW or not is_redrive(parcel):
            self._strays.remember(envelope)

    def _take(self, node: Node, at_most: int) -> list[InboxItem]:
        """The contents of the node's next batch, in random order, with some stray messages."""
        inbox: list[InboxItem] = node.inbox
        taken: list[InboxItem] = []
        for _ in range(min(self._random.choice(TAKEN), at_most, len(inbox))):
            place = self._random.randrange(len(inbox))
            inbox[place], inbox[-1] = inbox[-1], inbox[place]
            parcel = inbox.pop()
            if parcel.open is not None:
                parcel.item, parcel.open = parcel.open(), None
            if parcel.item is not None and self._is_admitted(parcel):
                taken.append(parcel)
            taken += self._strays.draw()
        return old_reports_apart(taken)

    def _is_admitted(self, parcel: InboxItem) -> bool:
        """Whether the parcel may reach its execution. A silenced execution gets only its deadline."""
        if not isinstance(parcel.item, Envelope) or isinstance(parcel.item.message, DeadlineReached):
            return True
        if not self.witness.is_silenced(parcel.item.execution_id):
            return True
        self._losses.withheld(parcel)
        return False

    def _commit_in_between(self, node: Node, items: list[Any]) -> None:
        """Let the other node commit after this one has loaded. The other commit counts."""
        ids = [item.execution_id for item in items if isinstance(item, Envelope) and item.new is None]
        with self.database.read() as connection:
            early = load_executions(connection, ids)
        other = self._other(node)
        for item in items:
            if isinstance(item, Envelope) and may_come_twice(item) and self._chance(0.5):
                other.inbox.append(InboxItem(item))
        if other.inbox:
            self._step(other)
        node.writer.early = early

    # Crashes and sweeps

    def _next_fault(self, items: int) -> Fault:
        dice = self._random.random()
        for fault, share in self._fault_rates.faults:
            if fault in (Fault.LOST, Fault.DURABLE):
                dice -= share * min(1, self._fault_rates.large / max(items, 1))
            else:
                dice -= share
            if dice < 0:
                self.counts[fault.value] += 1
                return fault
        return Fault.NONE

    def _crash(self, node: Node, taken: list[InboxItem], crash: Crash) -> None:
        """The node crashes and loses its memory; a new node replaces it."""
        self.faults.append(f"commit {self.witness.commits}: {node.lease.node_id}: {crash.args[0].value}")
        parcels = [*taken, *node.inbox]
        self._losses.suspect(parcels)
        self._losses.lose_calls(node)
        self._nodes[self._nodes.index(node)] = self._new_node()
        self._dying.append(node.lease.node_id)
        for parcel in parcels:
            if parcel.lost is not None:
                parcel.lost()

    def _declare_dead(self, node: Node) -> None:
        """The other node declares this running node dead and takes over its calls."""
        self.counts["taken for dead"] += 1
        self.faults.append(f"commit {self.witness.commits}: {node.lease.node_id} is taken for dead")
        self._losses.lose_calls(node)
        leases.declare_dead(self.database, node.lease.node_id)
        if self._chance(0.5):
            self._judge(self._other(node).sweep(only_own_share=self._chance(0.5)))

    def _detect_crashes(self) -> None:
        """The crashed nodes are detected."""
        for node_id in self._dying:
            leases.declare_dead(self.database, node_id)
        self._dying.clear()

    def _sweep(self, *, only_own_share: bool = False) -> bool:
        """Both nodes look for lost work. Returns whether they found any."""
        self._detect_crashes()
        self._losses.needs_sweep = False
        found = False
        for node in self._nodes:
            found |= self._judge(node.sweep(only_own_share=only_own_share))
        return found

    def _judge(self, found: list[str]) -> bool:
        return self._losses.judge(found, self._nodes, self.witness.runs)

    # Time

    def _idle(self) -> None:
        """All inboxes are empty: look for lost work, or else let time pass."""
        if self._environment.requests:
            return
        if self._losses.needs_sweep or self._losses:
            self._recover_losses()
        if self._losses.needs_sweep or self._environment.requests or any(node.inbox for node in self._nodes):
            return
        if self._timeline.advance(self._nodes) or self._timeline.fire_overdue(self._nodes):
            return
        self.witness.check_stopped()
        for run in self.witness.all:
            if run.execution.is_running and not run.is_silenced and not run.ends_by_stop:
                if not run.execution.waiting_steps:
                    raise Violation("it is stuck", run)
                self._end_wait(run)
        if self._environment.requests:
            return
        self._timeline.advance_to_deadline(self._nodes)

    def _recover_losses(self) -> None:
        """Two rounds, because a node suspects its own calls before it makes them again."""
        for _ in range(3):
            self._sweep()
            while any(node.inbox for node in self._nodes):
                self._step(self._random.choice(self._nodes))
            if self._losses.needs_sweep:
                return
        self._losses.recovered()

    # Ends

    def _interrupt(self) -> None:
        for run in list(self.witness.interruptible):
            if run.commits >= run.case.interrupted_at or not run.execution.is_running:
                self.witness.interruptible.remove(run)
                run.is_silenced = run.case.interruption == "silence" and run.execution.is_running
                if run.case.interruption == "stop":
                    self._environment.stop(run.execution.execution_id)

    def _redrive(self) -> None:
        """Now and then redrive an execution that has ended without success, or waits for a redrive."""
        waiting = self.witness.waiting
        if waiting and self._chance(self._fault_rates.redrive):
            self._end_wait(waiting.pop(self._random.randrange(len(waiting))))
        ended = self.witness.redrivable
        if ended and self._chance(self._fault_rates.redrive):
            run = ended.pop(self._random.randrange(len(ended)))
            if not run.execution.is_running:
                self._environment.redrive(run)

    def _end_wait(self, run: Run) -> None:
        """Redrive an execution that waits for it, or stop it after so many tries: most fail again in the same way."""
        if not run.execution.is_running or not run.execution.waiting_steps:
            return
        self.counts["waited for a redrive"] += 1
        if run.redrives < REDRIVES_MAX:
            self._environment.redrive(run)
        else:
            self._environment.stop(run.execution.execution_id)

    def _is_over(self) -> bool:
        if self.witness.running or self._environment.requests or any(node.inbox for node in self._nodes):
            return False
        if len(self.witness.runs) == 0 or self._schedules.has_pending:
            return False
        for _ in range(3):
            self._sweep()
            if any(isinstance(p.item, Envelope) or p.then is None for node in self._nodes for p in node.inbox):
                return False
            while any(node.inbox for node in self._nodes):
                for node in list(self._nodes):
                    self._step(node)
        return not any(node.inbox for node in self._nodes)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share
