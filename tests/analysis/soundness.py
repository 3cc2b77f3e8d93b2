"""Checks what the analysis says in random runs of random flows: what it calls impossible never happens, it allows for
every document, and no execution takes more than its worst case.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from flowserver.analysis.constants import ways_through
from flowserver.analysis.data_flow import FLOW_CONTEXT, DataFlow, StepFacts, built
from flowserver.analysis.proving import prove
from flowserver.analysis.rules import Finding
from flowserver.analysis.shapes import EMPTY, UNKNOWN_OBJECT, Anything, Array, Document, Scalar, Shape
from flowserver.analysis.worst_case import Cost
from flowserver.base.json_values import Json, load_json
from flowserver.language.graph import Flow
from flowserver.language.parser import parse
from flowserver.machine.events import Event, EventType
from tests.analysis.impossible import CLAIMED, Claims, Fact, facts_of
from tests.analysis.random_flows import random_flow
from tests.analysis.random_runs import RandomWorld, Vocabulary

RUNS_PER_FLOW: Final = 10
FAILS_ON_MISSING: Final = 0.1
"""The share of runs under `missing_source: fail`."""

REDRIVEN: Final = 0.3
"""The share of executions that can be redriven, and are."""

UNTIL_REDRIVEN: Final = frozenset({"timed out", "waited"})
"""Facts that claims exclude only until a redrive, which gives an execution the whole time again."""


@dataclass
class Tally:
    """What many runs have shown. A claim is exercised if a run has entered the step that it is about."""

    flows: int = 0
    redriven: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    claims: Counter[str] = field(default_factory=Counter)
    exercised: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """How many executions have run."""
        return self.ends.total()

    def add(self, other: "Tally") -> None:
        """Add what another process has seen."""
        self.flows += other.flows
        self.redriven += other.redriven
        self.ends += other.ends
        self.claims += other.claims
        self.exercised += other.exercised
        self.documents += other.documents
        self.wrong += other.wrong

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {end}" for end, count in self.ends.most_common())
        claims = ", ".join(f"{rule} {self.exercised[rule]:,} of {made:,}" for rule, made in sorted(self.claims.items()))
        return (
            f"{self.runs:,} runs of {self.flows:,} flows ({ends}; {self.redriven:,} redriven); "
            f"{self.documents:,} documents; claims whose step was entered: {claims}; {len(self.wrong)} wrong"
        )


def check_flows(seeds: Iterable[int], runs: int = RUNS_PER_FLOW) -> Tally:
    """Check what the analysis says of each seed's flow in so many runs."""
    tally = Tally()
    for seed in seeds:
        _check_flow(seed, runs, tally)
    return tally


def _check_flow(seed: int, runs: int, tally: Tally) -> None:
    text, limits = random_flow(seed)
    flow = parse(text, limits).flow
    proof = prove(text, limits)
    assert proof.worst_case is not None
    claims = _claims(text, flow, proof.findings)
    known, words, ways = known_of(flow), Vocabulary(text, flow), _on_ways(flow)
    seen: set[Fact] = set()
    for number in range(runs):
        random = Random(f"run {seed}/{number}")
        world = RandomWorld(flow, words, random, limits, fails=random.random() < FAILS_ON_MISSING)
        world.run_bounded()
        if world.can_be_redriven and random.random() < REDRIVEN:
            world.run_again()
            tally.redriven += 1
        facts = facts_of(world)
        if world.execution.redrive_count:
            facts = {fact for fact in facts if fact[0] not in UNTIL_REDRIVEN}
        seen |= facts
        wrong = [f"{finding.id}: {finding.message}; but {facts & never}" for finding, never in claims if facts & never]
        wrong += [f"not allowed for: {event}" for event in _documents(world) if not is_allowed(known, event)]
        wrong += [
            f"constants exclude each way to {name}"
            for what, name, *_ in facts
            if what == "entered" and name not in ways
        ]
        wrong += _beyond(proof.worst_case, world)
        tally.wrong += [f"flow {seed}, run {number}: {each}" for each in wrong]
        tally.ends[str(world.execution.status)] += 1
        tally.documents += sum(1 for _ in _documents(world))
    tally.flows += 1
    tally.claims.update(finding.id for finding, _ in claims)
    tally.exercised.update(finding.id for finding, never in claims if _is_exercised(never, seen))


def _is_exercised(never: set[Fact], seen: set[Fact]) -> bool:
    """Whether a run has entered the step that a claim is about, unless that is just what the claim excludes."""
    return all(what == "entered" or ("entered", name) in seen for what, name, *_ in never)


def _claims(text: str, flow: Flow, findings: Iterable[Finding]) -> list[tuple[Finding, set[Fact]]]:
    claims = Claims(text, flow)
    found = [(finding, set(claims.forbidden_by(finding))) for finding in findings if finding.id in CLAIMED]
    assert all(never for _, never in found), "each claim says what never happens"
    return found


def _beyond(worst: Cost, world: RandomWorld) -> Iterator[str]:
    """What the run has taken more of than the worst case says, which counts no redrives and no waits for one."""
    execution = world.execution
    if any(event.type in (EventType.EXECUTION_REDRIVEN, EventType.STEP_WAITING_FOR_REDRIVE) for event in world.events):
        return
    seconds = ((execution.stopped_at or world.now_ms) - execution.started_at) / 1000
    taken = Cost(seconds, len(world.calls), len(world.events), world.lists_max)
    if taken.worse(worst) != worst:
        yield f"took {taken}, more than {worst}"


# Documents


def _documents(world: RandomWorld) -> Iterator[Event]:
    return (event for event in world.events if event.type in (EventType.STEP_ENTERED, EventType.STEP_STARTED))


def known_of(flow: Flow) -> dict[str, StepFacts]:
    """What is known of each step, by its name."""
    return {
        flow.lists[list_id].steps[index].name: facts
        for list_id, known in _data_of(flow).lists.items()
        for index, facts in known.steps.items()
    }


def _on_ways(flow: Flow) -> set[str | int]:
    """The flow itself, and the steps to which a way leads that constants allow."""
    lists = _data_of(flow).lists.items()
    ways = {list_id: ways_through(flow.lists[list_id], known, lambda _: True) for list_id, known in lists}
    return {"", *(flow.lists[list_id].steps[index].name for list_id, found in ways.items() for index in found.first)}


def _data_of(flow: Flow) -> DataFlow:
    given = UNKNOWN_OBJECT
    if flow.input_mappings is not None:
        given = built(flow.input_mappings, UNKNOWN_OBJECT, EMPTY, FLOW_CONTEXT)
    return DataFlow(flow.root, given)


def is_allowed(known: dict[str, StepFacts], event: Event) -> bool:
    """Whether the analysis allows for the documents of an event."""
    facts = known.get(event.step_name)
    if facts is None:
        return False
    detail = load_json(event.detail)
    if event.type is EventType.STEP_ENTERED:
        return allows(facts.outer, detail["input"]) and allows(facts.local, detail["local"])
    return allows(facts.input, detail["input"])


def allows(shape: Shape, value: Json) -> bool:
    """Whether the shape represents the value."""
    match shape:
        case Anything():
            return True
        case Array(item, elements):
            if not isinstance(value, list) or not all(item is not None and allows(item, each) for each in value):
                return False
            return elements is None or (len(value) == len(elements) and all(map(allows, elements, value)))
        case Document(parts, is_open):
            return (
                isinstance(value, dict)
                and (is_open or value.keys() <= parts.keys())
                and all(key in value for key, part in parts.items() if part.is_sure)
                and all(allows(part.shape, value[key]) for key, part in parts.items() if key in value)
            )
        case Scalar(kind):
            return kind == _kind(value)


def _kind(value: Json) -> str:
    if value is None or isinstance(value, (bool, str)):
        return "null" if value is None else "boolean" if isinstance(value, bool) else "text"
    return "number" if isinstance(value, (int, float)) else "none"
