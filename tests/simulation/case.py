"""One simulated execution: a flow, its input, its world's moods and its server's settings, all from a seed.

Parsing a definition costs more than running it, so some consecutive executions share one.
"""

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import yaml

from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.limits import Limits
from flowserver.language.graph import Flow
from flowserver.language.parser import parse
from flowserver.machine.mappings import MissingSource
from tests.simulation.functions import KEYS, Functions
from tests.simulation.generator import Generator
from tests.simulation.reference import Expected, Reference, Settings

NOW_MS = 1_700_000_000_000
PER_DEFINITION = 20
"""How many executions share a definition."""

TOKEN_CHARACTERS = 40
"""All tokens are of one length, so that data has the same size whoever counts it."""


@dataclass(frozen=True)
class Case:
    """What is to be run, and what must come of it."""

    seed: int
    number: int
    definition: JsonObject
    flow: Flow
    input: JsonObject
    functions: Functions
    limits: Limits
    missing_source: MissingSource
    expected: Expected

    @property
    def name(self) -> str:
        """The arguments that replay this case."""
        return f"--seed {self.seed} --only {self.number}"

    def text(self) -> str:
        """The definition as a person reads it."""
        return yaml.safe_dump(self.definition, sort_keys=False, width=120)


def make_case(seed: int, number: int) -> Case:
    """The case of a number; the same arguments give the same case."""
    definition, flow = _definition(seed, number // PER_DEFINITION)
    random = Random(f"{seed}/{number}")
    given: JsonObject = {key: random.randint(0, 3) for key in random.sample(KEYS, random.randint(2, 4))}
    given["list"] = [random.randint(0, 3) for _ in range(random.randint(0, 3))]
    limits = Limits(
        step_data_bytes_max=random.randint(100, 1_000) if random.random() < 0.05 else 262_144,
        foreach_concurrency_max=random.choice([1, 2, 100]),
        turn_steps_max=random.choice([1, 2, 5, 200]),
    )
    functions = Functions(f"{seed}/{number}")
    missing_source: MissingSource = "fail" if random.random() < 0.05 else "null"
    settings = Settings(
        limits=limits,
        fails_on_missing=missing_source == "fail",
        flow_name="sim",
        execution_name=f"run{number}",
        started_time=format_instant(NOW_MS),
        token="." * TOKEN_CHARACTERS,
    )
    expected = Reference(definition, functions, settings).run(given)
    return Case(seed, number, definition, flow, given, functions, limits, missing_source, expected)


@lru_cache(maxsize=4)
def _definition(seed: int, number: int) -> tuple[JsonObject, Flow]:
    definition = Generator(Random(f"{seed}:{number}")).definition()
    return definition, parse(dump_json(definition), Limits()).flow
