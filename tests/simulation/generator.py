"""Random flows, built of blocks that end by construction: jumps go forward, except in loops that count.

Definitions are plain data, as the reference reads them. The machine gets their YAML text.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from flowserver.base.json_values import JsonObject
from tests.simulation.functions import ERRORS, KEYS, SLOW_SUB, SUB, TOKEN

DEPTH_MAX = 3
SUB_DEPTH_MAX = 1
LARGE = 0.1
"""The share of large flows."""

LARGE_BLOCKS_MAX, SMALL_BLOCKS_MAX = (7, 3), (3, 2)
"""The largest number of blocks in a flow's top-level list, and in a nested list."""

FORWARD = "(a later sibling)"
"""A placeholder for a goto target until the list is complete."""

CAUGHT = ([["FnF.ALL"]], [["E1"]], [["E2", "E1"], ["FnF.ALL"]], [["FnF.TaskTimeout", "FnF.InvalidLocal"]])
CONDITIONS = (
    "$.a > 1", "$.b == 2", "$.c", "$.gone != 1", "$.gone == 1", "$.a < 2 && $.b >= 1", "!($.a == 1)", "$.d in $.list",
    "$.a <= $.b || $.c == 0", "true",
)  # fmt: skip
CONSTANTS = (0, 1, 2, -1, "text", None, True, [1, 2], {"k": 1}, "")


class Generator:
    """Makes one definition.

    Most definitions are small: small flows reveal the same faults as large ones, and a run of many small flows covers
    more orders of events. The definition of a sub-flow is small, starts no sub-flows, and does not use its execution's
    name, which the reference cannot know.
    """

    def __init__(self, random: Random, *, is_sub: bool = False) -> None:
        self._random = random
        is_large = not is_sub and random.random() < LARGE
        self._depth_max = SUB_DEPTH_MAX if is_sub else DEPTH_MAX
        self._blocks_max = LARGE_BLOCKS_MAX if is_large else SMALL_BLOCKS_MAX
        self._contexts = ["$context.flow.name", "$context.step.name"]
        if not is_sub:
            self._contexts.append("$context.execution.name")
        self._count = 0
        self._blocks: list[tuple[int, Callable[[int], list[JsonObject]]]] = [
            (4, self._pass), (2, self._wait), (6, self._task), (4, self._flaky), (3, self._callback),
            (0 if is_sub else 3, self._child), (1, self._asynchronous), (1, self._action), (1, self._ending),
        ]  # fmt: skip
        self._nesting: list[tuple[int, Callable[[int], list[JsonObject]]]] = [
            (5, self._choice), (4, self._parallel), (4, self._foreach), (3, self._loop),
        ]  # fmt: skip

    def definition(self) -> JsonObject:
        """A complete definition."""
        flow: JsonObject = {"version": "v1", "type": "flow", "steps": self._steps(0)}
        if self._chance(0.2):
            flow["inputMappings"] = [*self._mappings("input"), {"target": "list", "source": "$input.list"}]
        if self._chance(0.3):
            flow["outputMappings"] = self._mappings("local", "input")
        if self._chance(0.2):
            flow["timeoutSeconds"] = 100_000
        return flow

    # Lists

    def _steps(self, depth: int) -> list[JsonObject]:
        steps: list[JsonObject] = []
        for _ in range(self._random.randint(1, self._blocks_max[min(depth, 1)])):
            steps += self._block(depth)
        if "catch" in steps[-1] and self._chance(0.8):
            steps += self._pass(depth)
        for index, step in enumerate(steps):
            self._resolve_jumps(step, [later["name"] for later in steps[index + 1 :]])
        return steps

    def _block(self, depth: int) -> list[JsonObject]:
        nests = depth < self._depth_max and self._chance(0.4)
        weights, blocks = zip(*(self._nesting if nests else self._blocks), strict=True)
        block: Callable[[int], list[JsonObject]] = self._random.choices(blocks, weights)[0]
        return block(depth)

    def _resolve_jumps(self, step: JsonObject, later: list[str]) -> None:
        """Give every forward jump a target; the last step has no later sibling, so its jump is removed."""
        jumps = [*step.get("catch", ()), *step.get("choices", ()), step.get("default", {})]
        for jump in jumps:
            if jump.get("goto") == FORWARD and later:
                jump["goto"] = self._random.choice(later)
            elif jump.get("goto") == FORWARD:
                del jump["goto"]
        if "catch" in step and not later:
            del step["catch"]

    # Blocks

    def _pass(self, _: int) -> list[JsonObject]:
        return [self._step("pass", outputMappings=self._mappings("input", "context"))]

    def _wait(self, _: int) -> list[JsonObject]:
        untils: list[JsonObject] = [
            {"duration": 0},
            {"duration": 2},
            {"timestamp": "2023-11-14T22:13:50Z"},
            {"duration": "$.a"},
        ]
        return [self._step("wait", **self._random.choices(untils, (4, 4, 4, 1))[0])]

    def _task(self, _: int) -> list[JsonObject]:
        if self._chance(0.15):
            return [self._handled(self._call("odd"))]
        return [self._call(self._random.choice(["echo", "calc", "make"]))]

    def _flaky(self, _: int) -> list[JsonObject]:
        if self._chance(0.3):
            return [self._handled(self._call("slow", timeoutSeconds=self._random.randint(1, 9)))]
        return [self._handled(self._call("flaky"))]

    def _callback(self, _: int) -> list[JsonObject]:
        mappings = [{"target": TOKEN, "source": "$context.task.token"}, *self._mappings("input", "local")]
        step = self._call("ask", pattern="waitForCallback", inputMappings=mappings)
        if self._chance(0.3):
            step |= {"resourceArn": _function("slow_ask"), "timeoutSeconds": 5}
        return [self._handled(step)]

    def _child(self, _: int) -> list[JsonObject]:
        pattern = self._random.choice(["sync", "sync", "requestResponse"])
        step = self._call("child", pattern=pattern, resourceArn="acs:fnf:::flow/child")
        if self._chance(0.5):
            return [self._handled(self._real_child(step))]
        if self._chance(0.3):
            slow = {"resourceArn": f"acs:fnf:::flow/{SLOW_SUB}", "pattern": "sync", "timeoutSeconds": 5}
            return [self._handled(step | slow)]
        if self._chance(0.3):
            step |= {"resourceArn": "acs:fnf:::flow/slow_child", "timeoutSeconds": 5}
        if self._chance(0.4):
            step["serviceParams"] = {"Input": "$", "ExecutionName": self._random.choice(["run", "run", "run", "$.a"])}
        return [self._handled(step)]

    def _real_child(self, step: JsonObject) -> JsonObject:
        params = {"serviceParams": {"Input": "$"}} if self._chance(0.3) else {}
        return step | {"resourceArn": f"acs:fnf:::flow/{SUB}"} | params

    def _asynchronous(self, _: int) -> list[JsonObject]:
        invocation_type = self._random.choices(["Async", "Sync", "$.a"], (4, 1, 1))[0]
        step = self._call("calc", serviceParams={"InvocationType": invocation_type})
        if self._chance(0.5):
            function = self._random.choice(["flaky", "odd", "slow"])
            step |= {"resourceArn": _function(function), "pattern": "sync", "timeoutSeconds": 7}
        return [self._handled(step)]

    def _action(self, _: int) -> list[JsonObject]:
        step = self._call("flaky", serviceParams={"All": ["$", {"constant": 1}], "Deep": {"all": "$"}})
        del step["resourceArn"]
        return [self._handled(step | {"action": "ocr:Read"})]

    def _ending(self, _: int) -> list[JsonObject]:
        if self._chance(0.6):
            return [self._step("succeed", end=None)]
        return [{"type": "fail", "name": self._name(), "error": self._random.choice(ERRORS), "cause": "given up"}]

    def _choice(self, depth: int) -> list[JsonObject]:
        conditions = self._random.sample(CONDITIONS, self._random.randint(1, 3))
        step = self._step("choice", choices=[{"condition": text, **self._option(depth)} for text in conditions])
        if self._chance(0.6):
            step["default"] = self._option(depth)
        return [step]

    def _option(self, depth: int) -> JsonObject:
        option: JsonObject = {}
        if self._chance(0.7):
            option["steps"] = self._steps(depth + 1)
        if self._chance(0.4):
            option["goto"] = FORWARD
        return option

    def _parallel(self, depth: int) -> list[JsonObject]:
        branches = [{"steps": self._steps(depth + 1)} for _ in range(self._random.randint(1, 3))]
        return [self._step("parallel", branches=branches, outputMappings=self._joined())]

    def _foreach(self, depth: int) -> list[JsonObject]:
        path = self._random.choices(["$.items", "$.list", "$.a"], (10, 10, 1))[0]
        mapping = {"collection": path, "item": self._random.choice(["it", "a"])}
        if self._chance(0.5):
            mapping["index"] = "b"
        if path == "$.items" and depth == 0 and self._chance(0.2):
            return self._many_callbacks(mapping)
        each = self._step(
            "foreach", iterationMapping=mapping, steps=self._steps(depth + 1), outputMappings=self._joined()
        )
        if self._chance(0.9):
            each.pop("inputMappings", None)  # large collections rarely keep their items
        made = {"type": "task", "name": self._name(), "resourceArn": _function("make")}
        return [made, each] if path == "$.items" else [each]

    def _many_callbacks(self, mapping: JsonObject) -> list[JsonObject]:
        """So many callbacks that the history stores the collection separately, and the cached execution is kept while
        it waits.
        """
        made = {"type": "task", "name": self._name(), "resourceArn": _function("many")}
        each = self._step("foreach", iterationMapping=mapping, steps=self._callback(0), outputMappings=self._joined())
        each.pop("inputMappings", None)
        for step in each["steps"]:
            self._resolve_jumps(step, [])
        return [made, each]

    def _loop(self, depth: int) -> list[JsonObject]:
        counter = f"n{self._count}"
        start = {"type": "pass", "name": self._name(), "outputMappings": [{"target": counter, "source": 0}]}
        count = {
            "type": "task",
            "name": self._name(),
            "resourceArn": _function("bump"),
            "inputMappings": [{"target": "n", "source": f"$local.{counter}"}],
            "outputMappings": [{"target": counter, "source": "$local.n"}],
        }
        again = {"condition": f"$.{counter} < {self._random.randint(1, 3)}", "goto": count["name"]}
        return [start, count, *self._block(depth + 1), {"type": "choice", "name": self._name(), "choices": [again]}]

    # Parts

    def _step(self, kind: str, **attributes: Any) -> JsonObject:
        step: JsonObject = {"type": kind, "name": self._name()}
        if self._chance(0.3):
            step["inputMappings"] = self._mappings("input", "local", "context")
        if self._chance(0.3):
            step["outputMappings"] = self._mappings("input")
        if self._chance(0.05):
            step["end"] = True
        step |= attributes
        return {name: value for name, value in step.items() if value is not None}

    def _call(self, function: str, **attributes: Any) -> JsonObject:
        step = self._step("task", resourceArn=_function(function))
        if "outputMappings" in step:
            step["outputMappings"] = self._mappings("local", "input")
        return step | attributes

    def _handled(self, step: JsonObject) -> JsonObject:
        """Sometimes with retry and catch."""
        if self._chance(0.6):
            errors = self._random.choice([["FnF.ALL"], ["E1"], ["E2", "FnF.TaskTimeout", "FC.InvalidArgument"]])
            policy = {"errors": errors, "maxAttempts": self._random.randint(0, 3), "intervalSeconds": 1}
            step["retry"] = [policy, {"errors": ["E2", "FC.Unknown"]}][: self._random.randint(1, 2)]
        if self._chance(0.7):
            step["catch"] = [{"errors": errors, "goto": FORWARD} for errors in self._random.choice(CAUGHT)]
        if "catch" in step and self._chance(0.5):
            sources = ["$local.error", "$local.cause", "$local.code", "$input.a", "$context.step.name"]
            step["errorMappings"] = [
                {"target": self._random.choice(KEYS), "source": source} for source in self._random.sample(sources, 2)
            ]
        return step

    def _mappings(self, *roots: str) -> list[JsonObject]:
        targets = self._random.sample(KEYS, self._random.randint(0, 3))
        return [{"target": target, "source": self._source(roots)} for target in targets]

    def _source(self, roots: tuple[str, ...]) -> Any:
        root = self._random.choice(roots)
        if self._chance(0.3):
            return self._random.choice(CONSTANTS)
        if root == "context":
            return self._random.choice(self._contexts)
        return f"${root}.{self._random.choice((*KEYS, *KEYS, 'list', 'items', 'it', 'a.k', 'list[0]', 'gone'))}"

    def _joined(self) -> list[JsonObject] | None:
        if self._chance(0.3):
            return None
        sources = ["$local[*].a", "$local[0].b", "$local[1]", "$local", "$input.a", "$local[*].c[*]"]
        targets = self._random.sample(KEYS, 2)
        return [{"target": target, "source": self._random.choice(sources)} for target in targets]

    def _name(self) -> str:
        self._count += 1
        return f"s{self._count}"

    def _chance(self, share: float) -> bool:
        return self._random.random() < share


def _function(name: str) -> str:
    return f"acs:fc:::services/sim/functions/{name}"
