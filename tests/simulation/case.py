"""The inputs of a simulation, all derived from a seed: a world's flows and settings, and its cases (a flow and an
input).

Parsing a definition costs more than running it, so the cases of a world share a few definitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Literal

import yaml

from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.machine.mappings import MissingSource
from flowserver.store.flows import FlowRow, OnRetriesExhausted, definition_id_of
from tests.simulation.functions import KEYS, NEVER, SLOW_LEAF, SLOW_SUB, SUB, Functions
from tests.simulation.generator import Generator
from tests.simulation.reference import Ambiguous, Expected, Reference, Settings

NOW_MS = 1_700_000_000_000
CASES_PER_WORLD = 360
DEFINITIONS_PER_WORLD = 9

TOKEN_CHARACTERS = 180
"""All tokens have the same length, so the machine and the reference compute the same data size."""

Interruption = Literal["", "stop", "silence"]
"""The ways an execution ends from outside: a stop, or its deadline because no message reaches it any more."""


@dataclass(frozen=True)
class Plan:
    """A world before it begins. Its number and the seed determine everything that happens in it."""

    seed: int
    number: int
    definitions: dict[str, JsonObject]
    """By flow name, including the sub-flow's."""
    limits: Limits
    missing_source: MissingSource

    def settings(self, flow_name: str, execution_name: str = "") -> Settings:
        """The inputs of the reference besides a definition and an input."""
        return Settings(
            limits=self.limits,
            fails_on_missing=self.missing_source == "fail",
            flow_name=flow_name,
            execution_name=execution_name,
            started_time=format_instant(NOW_MS),
            token="." * TOKEN_CHARACTERS,
        )

    def on_failure(self, flow_name: str) -> OnRetriesExhausted:
        """Whether executions of the flow wait for a redrive when they fail. The sub-flow's executions report
        their failure to their caller.
        """
        return "waitForRedrive" if flow_name[-1] in "147" else "fail"

    def text(self, flow_name: str) -> str:
        """A definition as YAML, for a failure report."""
        return yaml.safe_dump(self.definitions[flow_name], sort_keys=False, width=120)

    def expected_of_child(self, given: JsonObject, functions: Functions) -> Expected:
        """The expected outcome of the sub-flow with this input."""
        return Reference(self.definitions[SUB], functions, self.settings(SUB)).run(given)


@dataclass(frozen=True)
class Case:
    """One execution to run, and its expected outcome."""

    plan: Plan
    number: int
    flow_name: str
    definition: JsonObject
    input: JsonObject
    functions: Functions
    has_real_children: bool
    expected: Expected
    interruption: Interruption
    interrupted_at: int
    """The number of its commits after which the interruption happens."""

    @property
    def execution_name(self) -> str:
        """The name of the case's execution."""
        return f"run{self.number}"


def make_plan(seed: int, number: int, limits: Limits | None = None) -> Plan:
    """The plan of a world. Equal arguments give equal plans. Without `limits` the world draws its own."""
    random = Random(f"{seed}:{number}")
    definitions = {f"sim{index}": Generator(random).definition() for index in range(DEFINITIONS_PER_WORLD)}
    definitions[SUB] = Generator(random, is_sub=True).definition()
    definitions[SLOW_SUB] = _waiting("acs:fnf:::flow/" + SLOW_LEAF, "sync")
    definitions[SLOW_LEAF] = _waiting("acs:fc:::services/sim/functions/" + NEVER, "waitForCallback")
    limits = limits or Limits(
        step_data_bytes_max=random.randint(100, 1_000) if random.random() < 0.05 else 262_144,
        foreach_concurrency_max=random.choice([1, 2, 100]),
        turn_steps_max=random.choice([1, 2, 5, 200, 200, 200]),
    )
    return Plan(seed, number, definitions, limits, "fail" if random.random() < 0.05 else "null")


def _waiting(target: str, pattern: str) -> JsonObject:
    step = {"type": "task", "name": "w", "resourceArn": target, "pattern": pattern}
    return {"version": "v1", "type": "flow", "steps": [step]}


def make_cases(plan: Plan, interruption: float, share: float = 1.0) -> Iterator[Case]:
    """The cases of a world, or a share of them. `interruption` is the share that is ended from outside."""
    first = plan.number * CASES_PER_WORLD
    for number in range(first, first + round(CASES_PER_WORLD * share)):
        yield _make_case(plan, number, interruption)


def make_tick_case(plan: Plan, number: int, flow_name: str, execution_name: str, given: JsonObject) -> Case:
    """The case of an execution that a schedule starts; it is never interrupted. `number` is any number of the world."""
    functions = Functions(f"{plan.seed}/{number}")
    return _case_of(plan, number, flow_name, execution_name, given, functions, ("", 0))


def _make_case(plan: Plan, number: int, interruption: float) -> Case:
    random = Random(f"{plan.seed}/{number}")
    given: JsonObject = {key: random.randint(0, 3) for key in random.sample(KEYS, random.randint(2, 4))}
    given["list"] = [random.randint(0, 3) for _ in range(random.randint(0, 3))]
    flow_name = f"sim{number % DEFINITIONS_PER_WORLD}"
    functions = Functions(f"{plan.seed}/{number}")
    interrupted: Interruption = random.choice(("stop", "silence")) if random.random() < interruption else ""
    ending = interrupted, random.randint(1, 10)
    return _case_of(plan, number, flow_name, f"run{number}", given, functions, ending)


def _case_of(
    plan: Plan,
    number: int,
    flow_name: str,
    execution_name: str,
    given: JsonObject,
    functions: Functions,
    ending: tuple[Interruption, int],
) -> Case:
    settings, definition = plan.settings(flow_name, execution_name), plan.definitions[flow_name]
    has_real_children = True
    try:
        expected = Reference(definition, functions, replace(settings, sub=plan.definitions[SUB])).run(given)
    except Ambiguous:
        has_real_children = False
        expected = Reference(definition, functions, settings).run(given)
    return Case(plan, number, flow_name, definition, given, functions, has_real_children, expected, *ending)


@lru_cache(maxsize=16)
def flow_row(name: str, definition: str, on_failure: OnRetriesExhausted) -> FlowRow:
    """The row of a flow of a world."""
    return FlowRow(
        flow_id=name, name=name, description="", type="FDL", role_arn="", execution_mode="Standard",
        external_storage_location="", environment="", definition_id=definition_id_of(name, definition),
        definition=definition, created_at=NOW_MS, modified_at=NOW_MS, on_retries_exhausted=on_failure,
    )  # fmt: skip
