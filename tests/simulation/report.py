"""Runs worlds in one or several processes, and reports the first that fails with all that explains it."""

import gc
import multiprocessing
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from zlib import crc32

from flowserver.base.limits import Limits
from flowserver.engine.commit.batch_items import ReceiptKind
from flowserver.machine import events
from flowserver.machine.messages import RetryLostCall
from tests.simulation.case import CASES_PER_WORLD, make_plan
from tests.simulation.fault_rates import FaultRates, fault_rates_of
from tests.simulation.shared_database import SharedDatabase
from tests.simulation.witness import Run, Violation
from tests.simulation.world import World
from tests.support.world import trace

FAULTS_SHOWN = 30


@dataclass
class Summary:
    """The totals of a run, and the report on the execution that failed, if one did."""

    worlds: set[int] = field(default_factory=set)
    """The numbers of the worlds."""
    executions: int = 0
    children: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    fingerprint: int = 0
    """A checksum of all histories: equal runs have equal checksums."""
    failure: str | None = None

    def add(self, other: "Summary") -> None:
        """Add the totals of another process."""
        self.worlds |= other.worlds
        self.executions += other.executions
        self.children += other.children
        self.counts += other.counts
        self.ends += other.ends
        self.fingerprint = (self.fingerprint + other.fingerprint) % 2**32
        self.failure = self.failure or other.failure

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {end}" for end, count in self.ends.most_common())
        counts = ", ".join(f"{self.counts[name]:,} {name}" for name in sorted(self.counts))
        return (
            f"{self.executions:,} executions and {self.children:,} of their sub-flows ({ends or 'none ended'}) "
            f"in {len(self.worlds):,} worlds: {counts}; fingerprint {self.fingerprint:08x}"
        )


def worlds_for(executions: int) -> int:
    """The number of worlds that contain at least this many executions, sub-flows not counted."""
    return -(-executions // CASES_PER_WORLD)


def run_worlds(
    seed: int,
    numbers: Iterable[int],
    fault_rates: FaultRates | None = None,
    *,
    limits: Limits | None = None,
    share: float = 1.0,
    case_number: int | None = None,
) -> Summary:
    """Run the worlds of a seed in sequence until one fails.

    With `limits` the outcome is not compared with the reference, which knows no limits. A `share` below 1 makes shorter
    worlds. The failure report is about the execution that failed, or about case `case_number` if the world failed as a
    whole.
    """
    summary = Summary()
    with _small_documents():
        for number in numbers:
            plan = make_plan(seed, number, limits)
            rates = fault_rates or fault_rates_of(number)
            world = World(plan, _database(), rates, compares=limits is None, share=share)
            try:
                world.run()
            except (Exception, Violation) as error:
                _database.cache_clear()  # its transaction may be open
                summary.failure = _story(world, error, case_number)
                return summary
            summary.add(_summary_of(world))
    return summary


@contextmanager
def _small_documents() -> Iterator[None]:
    """Keep values of three elements apart from their events, as the server does with large ones."""
    before = events.LARGE_ELEMENTS
    events.LARGE_ELEMENTS = 3  # type: ignore[misc]
    try:
        yield
    finally:
        events.LARGE_ELEMENTS = before  # type: ignore[misc]


def run_in_processes(
    seed: int, numbers: Iterator[int], processes: int, listener: Callable[[Summary], None]
) -> Iterator[None]:
    """Run worlds in parallel until one fails; `listener` gets each summary. Yields regularly, so the caller can stop
    it.
    """
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare_process) as pool:
        running: set[Future[Summary]] = set()
        has_failed = False
        while True:
            if not has_failed:
                wanted = islice(numbers, 2 * processes - len(running))
                running |= {pool.submit(run_worlds, seed, [number]) for number in wanted}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                summary = future.result()
                has_failed = has_failed or summary.failure is not None
                listener(summary)
            yield


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # keep imported objects out of collections
    # objects of a world live until it ends; searching them for garbage costs an eighth of the time
    gc.set_threshold(50_000, 20, 5)


@lru_cache(maxsize=1)
def _database() -> SharedDatabase:
    return SharedDatabase()


def _summary_of(world: World) -> Summary:
    summary = Summary(worlds={world.plan.number}, counts=Counter(world.counts))
    for run in world.witness.runs.values():
        summary.executions += not run.is_child
        summary.children += run.is_child
        summary.ends[run.execution.status] += 1
        summary.counts["FnF.RuntimeError"] += run.execution.error == "FnF.RuntimeError"
        summary.counts["events"] += len(run.events)
        summary.counts["redriven"] += run.redrives
        summary.counts["started over while it waited"] += run.starts_over
        summary.counts["lost calls"] += sum(
            isinstance(told.message, RetryLostCall) and told.kind is ReceiptKind.APPLIED for told in run.log
        )
        text = repr([(run.execution.name, event) for event in run.events])
        summary.fingerprint = (summary.fingerprint + crc32(text.encode())) % 2**32
    summary.counts["turns"] += world.witness.turns
    summary.counts["commits"] += world.witness.commits
    return summary


def _story(world: World, error: BaseException, case_number: int | None) -> str:
    run = getattr(error, "run", None)
    if run is None and case_number is not None:
        runs = world.witness.runs.values()
        run = next((each for each in runs if each.case.number == case_number and not each.is_child), None)
    first = world.plan.number * CASES_PER_WORLD if run is None else run.case.number
    return "\n".join(
        [
            f"replay with: python -m tests.simulation --seed {world.plan.seed} --only {first}",
            *([] if run is None else _describe(run)),
            "the world's last faults:",
            *world.faults[-FAULTS_SHOWN:],
            f"at {world.clock.now_ms()}, after {world.witness.commits} commits:",
            "".join(traceback.format_exception(error)),
        ]
    )


def _describe(run: Run) -> list[str]:
    """One execution: its flow, its messages with commit and node, the events that followed, its expected outcome."""
    expected = run.expected
    due = f"Succeeded with {expected.output}" if expected.output is not None else f"Failed by {set(expected.problems)}"
    lines, told = trace(run.events), []
    at = 0
    for each in run.log:
        told += [f"   {line}" for line in lines[at : each.events]]
        at = max(at, each.events)
        told.append(f"=> commit {each.commit} of {each.node_id}, {each.message}: {each.kind.name}")
    return [
        run.case.plan.text(run.execution.flow_name),
        f"execution {run.execution.execution_id}, input {run.execution.input}, expected: {due}",
        f"missing_source {run.case.plan.missing_source}, {run.case.plan.limits}",
        *told,
        *(f"   {line}" for line in lines[at:]),
        str(run.execution),
    ]
