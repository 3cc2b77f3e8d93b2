"""Random flows for the rules: those of the simulation, with what the rules speak of far more often.

Retry and catch rules that overlap, time limits as short as the waits in them, constants near the limit of a step's
data, wrong roots, `[*]` in every place where a path can be, jumps back, queues and topics.
"""

from random import Random
from typing import Any

import yaml

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from tests.simulation.functions import KEYS
from tests.simulation.generator import CONDITIONS, FORWARD, Generator

NAMES = ("E1", "E2", "FC.Unknown", "FnF.TaskTimeout", "FnF.InvalidLocal", "FnF.ALL")
"""Errors that the rules of a step name."""

SECONDS = (0, 1, 2, 3, 5, 10, 20)
PATHS = (
    *(f"$.{key}" for key in KEYS), "$.list", "$.items", "$.list[0]", "$.a.k", "$.a[*]", "$.a[*].k", "$.b[*].k",
    "$.c[*]", "$.list[*].k", "$.items[*]", "$.gone", "$.input.a", "$.it", "$.list[*].gone",
)  # fmt: skip
READS = (*KEYS, *KEYS, "list", "items", "it", "a.k", "list[0]", "gone", "list[*]", "list[*].k", "a[*].k", "b[*][*]")
SUFFIXES = ("", "", "[*]", "[*].k", "[0]", ".k", ".k[*]", "[*][*]")
STRUCTURES = (
    [1, 2], [{"k": 1}, {"a": 2}], [{"a": 2}], {"k": [1]}, {"k": 2}, [[1], [2]], [], {}, 2, "text", None, True,
    "2023-11-14T22:13:25Z", "$local", "$input.list", "$input",
)  # fmt: skip
ROOTS = ("$local", "$input", "$context.task.token", "$context.execution", "$local.error")
LARGE_BYTES = 120


class RuleGenerator(Generator):
    """Makes one definition."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self._wanted: str | None = None
        self._is_about_time = self._chance(0.2)
        self._blocks += [(2, self._queue), (1, self._time), (1, self._constant), (1, self._back), (3, self._made)]

    def definition(self) -> JsonObject:
        """A complete definition."""
        flow = super().definition()
        flow.pop("timeoutSeconds", None)
        if self._is_about_time or self._chance(0.3):
            flow["timeoutSeconds"] = self._random.choice(SECONDS[1:])
        return flow

    def _block(self, depth: int) -> list[JsonObject]:
        if self._is_about_time and self._chance(0.7):
            nests = depth < self._depth_max and self._chance(0.4)
            return self._choice(depth) if nests else self._wait(depth)
        return super()._block(depth)

    # Blocks

    def _wait(self, _: int) -> list[JsonObject]:
        duration = self._random.choice(SECONDS) if self._chance(0.7) else self._path()
        return [self._step("wait", duration=duration)]

    def _time(self, _: int) -> list[JsonObject]:
        """A wait until an instant that an earlier step may have made."""
        return [self._step("wait", timestamp=self._path())]

    def _queue(self, _: int) -> list[JsonObject]:
        kind = self._random.choice(["queues/q/messages", "topics/t/messages"])
        body = self._random.choice(["$", self._path(), {"all": ["$", self._path()]}])
        step = self._call("", resourceArn=f"acs:mns:::/{kind}", serviceParams={"MessageBody": body})
        if self._chance(0.3):
            step["pattern"] = "waitForCallback"
        return [self._handled(step)]

    def _constant(self, _: int) -> list[JsonObject]:
        """Constants of about the limit. A later entry of the list may replace them."""
        large = "x" * self._random.choice((LARGE_BYTES // 2, LARGE_BYTES, 2 * LARGE_BYTES))
        mappings = [{"target": target, "source": large} for target in self._random.sample(KEYS, 2)]
        mappings += self._mappings("input", "local")
        return [self._step("pass", **{self._random.choice(["inputMappings", "outputMappings"]): mappings})]

    def _made(self, depth: int) -> list[JsonObject]:
        """A step that makes a value, and another step that uses it."""
        key, suffix = self._random.choice(KEYS), self._random.choice(SUFFIXES)
        made = self._step("pass", outputMappings=[{"target": key, "source": self._random.choice(STRUCTURES)}])
        use = self._random.choice([self._wait, self._time, self._queue, self._foreach, self._choice])
        self._wanted = f"$.{key}{suffix}"
        steps = use(depth + 1) if depth < self._depth_max else self._wait(depth)
        self._wanted = None
        return [made, *steps]

    def _back(self, depth: int) -> list[JsonObject]:
        """A loop that ends when its condition says so, or never."""
        first, again = self._block(depth + 1), {"condition": self._random.choice(CONDITIONS)}
        again["goto"] = self._random.choice(first)["name"]
        pause = self._step("wait", duration=self._random.choice(SECONDS[1:])) if self._chance(0.7) else None
        choice = self._step("choice", choices=[again])
        if self._chance(0.2):
            choice["default"] = {"goto": self._random.choice(first)["name"]}
        return [*first, *([] if pause is None else [pause]), choice]

    def _foreach(self, depth: int) -> list[JsonObject]:
        steps = super()._foreach(depth)
        if self._chance(0.4):
            steps[-1]["iterationMapping"]["collection"] = self._path()
        return steps

    def _choice(self, depth: int) -> list[JsonObject]:
        (step,) = super()._choice(depth)
        if self._chance(0.5):
            step["choices"][0]["condition"] = self._condition()
        return [step]

    def _ending(self, depth: int) -> list[JsonObject]:
        return super()._ending(depth) if self._chance(0.5) else self._pass(depth)

    # Parts

    def _handled(self, step: JsonObject) -> JsonObject:
        if self._chance(0.7):
            step["retry"] = [self._policy() for _ in range(self._random.randint(1, 4))]
        if self._chance(0.7):
            step["catch"] = [{"errors": self._names(), "goto": FORWARD} for _ in range(self._random.randint(1, 4))]
        if self._chance(0.4):
            step["timeoutSeconds"] = self._random.choice(SECONDS[1:])
        if self._chance(0.3):
            step["errorMappings"] = [*self._mappings("local"), {"target": "b", "source": "$local.error"}]
        return step

    def _policy(self) -> JsonObject:
        return {
            "errors": self._names(),
            "intervalSeconds": self._random.choice(SECONDS[:4]),
            "maxAttempts": self._random.randint(0, 3),
            "multiplier": self._random.choice([1, 1.5, 2]),
        }

    def _names(self) -> list[str]:
        return self._random.sample(NAMES, self._random.choice([1, 1, 2, 3]))

    def _source(self, roots: tuple[str, ...]) -> Any:
        source = super()._source(roots)
        is_reference = isinstance(source, str) and source.startswith(("$input", "$local"))
        if is_reference and self._chance(0.5):
            root = self._random.choice(["input", "local"]) if self._chance(0.2) else source[1:6]
            return f"${root}.{self._random.choice(READS)}"
        if self._chance(0.05):
            return self._random.choice(ROOTS)
        return source

    def _path(self) -> str:
        return self._wanted or self._random.choice(PATHS)

    def _condition(self) -> str:
        operator = self._random.choice(["==", "!=", "<", ">="])
        value = self._random.choice(["1", "2", '"text"', "true"])
        first = f"{self._path()} {operator} {value}"
        return self._random.choice([first, f"{first} || {self._path()}", f"{first} && !({self._path()} == 1)"])


class _Dumper(yaml.SafeDumper):
    """Writes equal values in full, so that each part of a definition has a place of its own."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def definition_text(definition: JsonObject) -> str:
    """A definition as YAML."""
    text: str = yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=200)
    return text


def random_flow(seed: int) -> tuple[str, Limits]:
    """A definition, and the limits under which it runs, which it often passes."""
    random = Random(f"rules {seed}")
    text = definition_text(RuleGenerator(random).definition())
    bytes_max = 2 * LARGE_BYTES if random.random() < 0.25 else 100_000
    window = random.choice([1, 2, 100])
    items_max = random.choice([2, 3, 50])
    return text, Limits(
        step_data_bytes_max=bytes_max, events_max=400, foreach_concurrency_max=window, foreach_items_max=items_max
    )
