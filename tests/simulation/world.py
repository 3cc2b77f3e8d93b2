"""A world: many executions and two nodes over one database, from the first start to the last end.

Its number and seed decide everything: which node works next, on what, and what goes wrong.
"""

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import count
from random import Random
from typing import Any

from sqlalchemy.exc import IntegrityError

from flowserver.base.json_values import dump_json
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.context import MADE_BYTES, BatchContext
from flowserver.engine.commit.definition_cache import DefinitionCache
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.engine.commit.fair_queue import BATCH_MAX
from flowserver.engine.commit.items import Envelope, ReceiptKind
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.engine.functions.caller import Caller
from flowserver.language.graph import Flow
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import DeadlineReached
from flowserver.store.executions.loading import load_executions
from flowserver.store.flows import FlowRow, definition_id_of, insert_flow
from tests.simulation import leases
from tests.simulation.case import NOW_MS, Plan, make_cases
from tests.simulation.disk import Disk
from tests.simulation.disorder import Crash, Disorder, Fault
from tests.simulation.losses import Losses
from tests.simulation.node import Node, Parcel, Tokens
from tests.simulation.outside import Outside, Request
from tests.simulation.schedules import Schedules
from tests.simulation.strays import Strays, is_old_report, is_redrive, may_come_twice, old_reports_apart
from tests.simulation.timeline import Timeline
from tests.simulation.witness import Witness, Wrong
from tests.support.clock import ManualClock

BUSY = 250
"""How many parcels make two nodes busy: no more executions are started, and time stands still."""

TAKEN = (1, 8, 64, 200, 200, 200, 200, 200)
"""How many parcels a batch may take."""

MADE_BYTES_MAX = (500, 5_000, MADE_BYTES)
"""How much a node's batches make before what is left of their items waits for another."""

SMALL = 8
"""How many parcels a batch takes at most if it will be taken apart."""

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


class World:
    """One world under way."""

    def __init__(
        self, plan: Plan, disk: Disk, disorder: Disorder, *, compares: bool = True, share: float = 1.0
    ) -> None:
        """Compared with the oracle or not; a share of the cases makes a shorter world, but another one."""
        self.plan = plan
        self.disk = disk
        self.clock = ManualClock(NOW_MS)
        self.compiled: dict[str, Flow] = {}
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._random = Random(f"{plan.seed}+{plan.number}")
        self._disorder = disorder
        self._compares = compares
        self._cases = list(make_cases(plan, disorder.interruption, share))
        self._tokens = Tokens(b"the simulation's key")
        self.witness = Witness(disk, self._random, disorder.deep_check)
        self._outside = Outside(self.witness, self.clock, plan.limits, self._tokens, self._random, disorder)
        self._strays = Strays(self.witness, self.clock, self._random, disorder)
        self._timeline = Timeline(disk, self.clock, self.witness, self._random)
        self._losses = Losses()
        self._names = count(1)
        self._dying: list[str] = []
        """Crashed, and nobody has noticed yet."""
        self._nodes: list[Node] = []

    def run(self) -> None:
        """From the first start to the last end; raises AssertionError with what is wrong."""
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
        self.disk.wipe()
        self.disk.next_fault = self._next_fault
        self.disk.witness = self.witness.committed
        with self.disk.read() as connection:
            for name, definition in self.plan.definitions.items():
                assert insert_flow(connection, _flow_row(name, dump_json(definition)))
        self._schedules = Schedules(self.plan, self.disk, self.witness, self._random)
        self._nodes = [self._new_node(), self._new_node()]
        for case in self._cases:
            self._outside.start(case)

    def _new_node(self) -> Node:
        node = Node(self, leases.NumberedLease(lambda: f"n{next(self._names)}"))
        leases.join(self.disk, node.lease.node_id, self.clock.now_ms())
        return node

    # What nodes need

    def workshop(self, lease: Lease, definitions: DefinitionCache) -> BatchContext:
        warm = ExecutionCache(self.plan.limits.cached_executions_bytes_max)
        workshop = BatchContext(
            self.clock, self.plan.limits, self.plan.missing_source, self._tokens, lease, definitions, warm
        )
        made_bytes_max = self._random.choice(MADE_BYTES_MAX) if self._disorder.faults else MADE_BYTES
        return replace(workshop, made_bytes_max=made_bytes_max)

    def dispatcher(self, lease: Lease) -> Dispatcher:
        return self._outside.dispatcher(lease)

    def call(self, node: Node, caller: Caller, command: InvokeTask) -> Parcel:
        return self._outside.call(node, caller, command)

    def is_cancelled(self) -> bool:
        return not self._chance(self._disorder.uncancelled)

    # A round

    def _round(self) -> None:
        self._interrupt()
        self._redrive()
        self._hand_over_requests()
        node = self._random.choice(self._nodes)
        if not node.inbox:
            node = self._other(node)
        if self._chance(0.5 if self._losses.shaken else self._disorder.sweep):
            self._sweep(only_own_share=self._chance(0.5))
        if self._waiting() < BUSY and self._chance(0.2):
            self._timeline.go_on(self._nodes)
        if not node.inbox:
            self._idle()
        else:
            if self._chance(self._disorder.declared_dead):
                self._declare_dead(node)
            self._step(node, conflict=self._chance(self._disorder.conflict))

    def _waiting(self) -> int:
        return sum(len(node.inbox) for node in self._nodes)

    def _other(self, node: Node) -> Node:
        return self._nodes[1 - self._nodes.index(node)]

    def _hand_over_requests(self) -> None:
        """Clients reach one of the nodes, some later than others."""
        waiting, self._outside.requests = self._outside.requests, []
        room = BUSY - self._waiting()
        for request in waiting:
            room -= request.is_start
            if (request.is_start and room < 0) or not self._chance(0.7):
                self._outside.requests.append(request)
                continue
            parcel = request.make()
            if parcel is not None:
                self._expect_answer(request, parcel)
                self._random.choice(self._nodes).inbox.append(parcel)

    def _expect_answer(self, request: Request, parcel: Parcel) -> None:
        def again(answer: Any = None) -> None:
            kind = getattr(answer, "kind", None)
            assert kind is not ReceiptKind.REFUSED or "history" in answer.reason, answer.reason
            is_redriven_later = request.is_redrive and kind is ReceiptKind.NOT_NOW
            if answer is None or isinstance(answer, Exception) or is_redriven_later:
                self._outside.requests.append(request)

        parcel.then = again
        parcel.lost = again

    def _step(self, node: Node, *, conflict: bool = False) -> None:
        """One batch of the node, from its loading to what follows its commit."""
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
            self._losses.shake(parcels)
        for parcel, answer in zip(parcels, answers, strict=False):
            self._answer(node, parcel, answer)
        left = parcels[len(answers) :]
        self.counts["left for another batch"] += len(left)
        node.inbox += left

    def _answer(self, node: Node, parcel: Parcel, answer: Any) -> None:
        item = parcel.item
        assert not isinstance(answer, IntegrityError), f"{item} is refused, though only the moment was wrong"
        is_foreign = isinstance(item, Envelope) and item.lease not in (None, node.lease.node_id)
        if (parcel.is_harmless or is_foreign) and not isinstance(answer, Exception):
            assert answer.kind in HARMLESS, f"{item} had an effect: {answer.kind}"
        elif isinstance(parcel.item, Envelope) and not isinstance(answer, Exception):
            self._strays.was_told(parcel.item)
        if parcel.then is not None:
            parcel.then(answer)
        elif isinstance(answer, Exception):
            self._losses.shake([parcel])

    def _take(self, node: Node, at_most: int) -> list[Parcel]:
        """What the node's next batch holds, in any order, with some that should not be there."""
        inbox: list[Parcel] = node.inbox
        taken: list[Parcel] = []
        for _ in range(min(self._random.choice(TAKEN), at_most, len(inbox))):
            place = self._random.randrange(len(inbox))
            inbox[place], inbox[-1] = inbox[-1], inbox[place]
            parcel = inbox.pop()
            if parcel.open is not None:
                parcel.item, parcel.open = parcel.open(), None
            if parcel.item is not None and self._is_admitted(parcel):
                taken.append(parcel)
            taken += self._strays.some()
        return old_reports_apart(taken)

    def _is_admitted(self, parcel: Parcel) -> bool:
        """Nothing but its deadline reaches an execution that is silenced."""
        if not isinstance(parcel.item, Envelope) or isinstance(parcel.item.message, DeadlineReached):
            return True
        if not self.witness.is_silenced(parcel.item.execution_id):
            return True
        self._losses.excuse(parcel)
        return False

    def _commit_in_between(self, node: Node, items: list[Any]) -> None:
        """The other node commits after this one has loaded: what it says of these executions counts, not this."""
        ids = [item.execution_id for item in items if isinstance(item, Envelope) and item.new is None]
        with self.disk.read() as connection:
            early = load_executions(connection, ids)
        other = self._other(node)
        for item in items:
            if isinstance(item, Envelope) and may_come_twice(item) and self._chance(0.5):
                other.inbox.append(Parcel(item))
        if other.inbox:
            self._step(other)
        node.writer.early = early

    # Crashes and sweeps

    def _next_fault(self, items: int) -> Fault:
        dice = self._random.random()
        for fault, share in self._disorder.faults:
            if fault in (Fault.LOST, Fault.DURABLE):
                dice -= share * min(1, self._disorder.large / max(items, 1))
            else:
                dice -= share
            if dice < 0:
                self.counts[fault.value] += 1
                return fault
        return Fault.NONE

    def _crash(self, node: Node, taken: list[Parcel], crash: Crash) -> None:
        """The node is no more, with all it knew; another comes in its place."""
        self.faults.append(f"commit {self.witness.commits}: {node.lease.node_id}: {crash.args[0].value}")
        parcels = [*taken, *node.inbox]
        self._losses.shake(parcels)
        self._losses.lose_calls(node)
        self._nodes[self._nodes.index(node)] = self._new_node()
        self._dying.append(node.lease.node_id)
        for parcel in parcels:
            if parcel.lost is not None:
                parcel.lost()

    def _declare_dead(self, node: Node) -> None:
        """The node lives, but the other has not heard of it, and takes its calls over."""
        self.counts["taken for dead"] += 1
        self.faults.append(f"commit {self.witness.commits}: {node.lease.node_id} is taken for dead")
        self._losses.lose_calls(node)
        leases.declare_dead(self.disk, node.lease.node_id)
        if self._chance(0.5):
            self._judge(self._other(node).sweep(only_own_share=self._chance(0.5)))

    def _bury(self) -> None:
        """Those that crashed are noticed."""
        for node_id in self._dying:
            leases.declare_dead(self.disk, node_id)
        self._dying.clear()

    def _sweep(self, *, only_own_share: bool = False) -> bool:
        """Both nodes look for what was left undone; whether they found something."""
        self._bury()
        self._losses.shaken = False
        found = False
        for node in self._nodes:
            found |= self._judge(node.sweep(only_own_share=only_own_share))
        return found

    def _judge(self, found: list[str]) -> bool:
        return self._losses.judge(found, self._nodes, self.witness.runs)

    # Time

    def _idle(self) -> None:
        """Nothing is on its way: look for what was lost, else let time go by."""
        if self._outside.requests:
            return
        if self._losses.shaken or self._losses:
            self._lost_and_found()
        if self._losses.shaken or self._outside.requests or any(node.inbox for node in self._nodes):
            return
        if self._timeline.go_on(self._nodes) or self._timeline.fire_overdue(self._nodes):
            return
        for run in self.witness.all:
            if run.execution.is_running and not run.is_silenced:
                raise Wrong("it is stuck", run)
        self._timeline.go_far(self._nodes)

    def _lost_and_found(self) -> None:
        """Two rounds, since a node suspects its own calls before it makes them again."""
        for _ in range(3):
            self._sweep()
            while any(node.inbox for node in self._nodes):
                self._step(self._random.choice(self._nodes))
            if self._losses.shaken:
                return
        self._losses.made_good()

    # Ends

    def _interrupt(self) -> None:
        for run in list(self.witness.interruptible):
            if run.commits >= run.case.interrupted_at or not run.execution.is_running:
                self.witness.interruptible.remove(run)
                run.is_silenced = run.case.interruption == "silence" and run.execution.is_running
                if run.case.interruption == "stop":
                    self._outside.stop(run.execution.execution_id)

    def _redrive(self) -> None:
        """Now and then an execution that has ended without success is to go on."""
        ended = self.witness.redrivable
        if ended and self._chance(self._disorder.redrive):
            run = ended.pop(self._random.randrange(len(ended)))
            if not run.execution.is_running:
                self._outside.redrive(run)

    def _is_over(self) -> bool:
        if self.witness.running or self._outside.requests or any(node.inbox for node in self._nodes):
            return False
        if len(self.witness.runs) == 0 or self._schedules.are_left:
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


@lru_cache(maxsize=16)
def _flow_row(name: str, definition: str) -> FlowRow:
    return FlowRow(
        flow_id=name, name=name, description="", type="FDL", role_arn="", execution_mode="Standard",
        external_storage_location="", environment="", definition_id=definition_id_of(name, definition),
        definition=definition, created_at=NOW_MS, modified_at=NOW_MS,
    )  # fmt: skip
