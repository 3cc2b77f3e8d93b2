"""Random flows for the rules: those of the simulation, with what the rules speak of far more often.

Retry and catch rules that overlap, time limits as short as the waits in them, constants near the limit of a step's
data, wrong roots, `[*]` in every place where a path can be, jumps back, queues and topics, every pattern and parameter
of each target, joins of known with unknown data. test_features.py checks that they have what real flows have.
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
    "$.c[*]", "$.list[*].k", "$.items[*]", "$.gone", "$.input.a", "$.it", "$.list[*].gone", "$", "$.a.k.k",
    '$["a"]', "$.list[0].k", "$.k.list[*].k",
)  # fmt: skip
READS = (
    *KEYS,
    *KEYS,
    "list",
    "items",
    "it",
    "a.k",
    "list[0]",
    "gone",
    "list[*]",
    "list[*].k",
    "a[*].k",
    "b[*][*]",
    "a.k.k",
    "list[0].k",
    "a.list[*].k",
    "d[*]",
)
SUFFIXES = ("", "", "[*]", "[*].k", "[0]", ".k", ".k[*]", "[*][*]")
STRUCTURES = (
    [1, 2], [{"k": 1}, {"a": 2}], [{"a": 2}], {"k": [1]}, {"k": 2}, [[1], [2]], [], {}, 2, "text", None, True,
    "2023-11-14T22:13:25Z", "$local", "$input.list", "$input",
)  # fmt: skip
ROOTS = (
    "$local", "$input", "$context", "$context.task.token", "$context.execution", "$context.execution.id",
    "$context.step.eventId", "$context.execution.startedTime", "$local.error", "$local.Output", "$local.Status",
)  # fmt: skip
FUNCTION, FLOW = "acs:fc:::services/sim/functions/echo", "acs:fnf:::flow/child"
PATTERNS = ("requestResponse", "sync", "waitForCallback")
FITTING: dict[str, list[tuple[Any, str]]] = {
    "_wait": [(2, ""), ([2], "[0]"), ({"k": 2}, ".k"), (0, "")],
    "_time": [("2023-11-14T22:13:25Z", ""), (["2023-11-14T22:13:25Z"], "[0]")],
    "_queue": [([{"a": 2}], "[*].k"), ([], "[*]"), ("text", "")],
    "_foreach": [
        ([1, 2], ""), ([], ""), ([], "[*]"), ([{"k": 1}, {"a": 2}], "[*].k"), ([{"a": 2}], "[*].k"), ({"k": [1]}, ".k"),
        ([[1], [2]], "[*]"),
    ],
}  # fmt: skip
"""Values with which a step goes on, and where they are in the value that is made for it."""

LARGE_BYTES = 120


class RuleGenerator(Generator):
    """Makes one definition."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self._wanted: str | None = None
        self._is_about_time = self._chance(0.2)
        self._blocks += [(2, self._queue), (1, self._time), (1, self._constant), (1, self._back), (6, self._made)]
        self._blocks += [(2, self._any_call), (1, self._gathered), (1, self._saga)]

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
            return self._random.choice([self._choice, self._ways])(depth) if nests else self._wait(depth)
        return super()._block(depth)

    # Blocks

    def _wait(self, _: int) -> list[JsonObject]:
        duration = self._random.choice(SECONDS) if self._chance(0.7) else self._path()
        return [self._step("wait", duration=duration)]

    def _ways(self, _: int) -> list[JsonObject]:
        """Two ways that take their time, of which one is taken, or both, and a wait after them."""
        waits = [{"steps": [self._step("wait", duration=self._random.choice(SECONDS))]} for _ in range(2)]
        if self._chance(0.3):
            return [self._step("parallel", branches=waits)]
        option = {"condition": self._random.choice(CONDITIONS), **waits[0]}
        return [self._step("choice", choices=[option], default=waits[1])]

    def _time(self, _: int) -> list[JsonObject]:
        """A wait until an instant that an earlier step may have made."""
        return [self._step("wait", timestamp=self._path())]

    def _queue(self, _: int) -> list[JsonObject]:
        kind = self._random.choice(["queues/q/messages", "topics/t/messages"])
        body = self._random.choice(["$", self._path(), {"all": ["$", self._path()]}])
        more = self._random.choice([{}, {"Priority": 4}, {"DelaySeconds": 1}, {"Priority": self._path()}])
        if kind.startswith("topics"):
            more = self._random.choice([{}, {"MessageTag": "t"}, {"MessageAttributes": self._path()}])
        step = self._call("", resourceArn=f"acs:mns:::/{kind}", serviceParams={"MessageBody": body, **more})
        if self._chance(0.3):
            step["pattern"] = "waitForCallback"
        return [self._handled(step)]

    def _any_call(self, _: int) -> list[JsonObject]:
        """A call in any pattern, with any parameters that its target takes."""
        arn, given = self._random.choice([FUNCTION, FLOW]), self._param()
        params: JsonObject = {"InvocationType": "Async", "StatefulAsyncInvocationID": self._path()}
        if arn == FLOW:
            params = {"Input": given, "ExecutionName": self._random.choice(["run", "$.a", self._path()])}
        step = self._call("", resourceArn=arn, pattern=self._random.choice(PATTERNS))
        step["serviceParams"] = dict(self._random.sample(list(params.items()), self._random.randint(1, 2)))
        if self._chance(0.3):
            action = self._random.choice(["fnf:StartExecution", "ocr:Read"])
            params = {"FlowName": "child", "Input": given} if action != "ocr:Read" else {"Text": given, "Page": 1}
            step |= {"action": action, "serviceParams": params, "pattern": "requestResponse"}
            del step["resourceArn"]
        return [self._handled(step)]

    def _gathered(self, depth: int) -> list[JsonObject]:
        """Branches that end with known, with unknown, and with no data, and a step that reads from all of them."""
        key = self._random.choice(KEYS)
        ends = [
            lambda: self._makes(key),
            lambda: self._answers(key),
            lambda: self._step("task", resourceArn=FUNCTION, outputMappings=self._mappings("local")),
            lambda: {"type": "succeed", "name": self._name()},
        ]
        count = self._random.randint(1, 3)
        branches = [{"steps": [self._random.choice(ends)()]} for _ in range(count)]
        reads = [f"$local[*].{self._random.choice(READS)}", f"$local[{self._random.randrange(3)}].{key}", "$local"]
        reads += [f"$local[*].{key}{self._random.choice(SUFFIXES)}", f"$local.{key}", "$local[*]"]
        target = self._random.choice(KEYS)
        outputs = [{"target": target, "source": self._random.choice(reads)}]
        step = self._step("parallel", branches=branches, outputMappings=outputs)
        if self._chance(0.3):
            step = self._step("foreach", steps=branches[0]["steps"], outputMappings=outputs)
            step["iterationMapping"] = {"collection": self._path(), "item": key}
        self._wanted = f"$.{target}{self._random.choice(SUFFIXES)}"
        use = self._random.choice([self._wait, self._time, self._queue, self._any_call])
        steps = use(depth)
        self._wanted = None
        return [step, *steps]

    def _saga(self, _: int) -> list[JsonObject]:
        """Tasks whose catches lead to steps that undo what was done before, the last first."""
        count = self._random.randint(2, 3)
        does = [self._call("flaky") for _ in range(count)]
        undoes = [self._call("echo") for _ in range(count - 1)]
        for number, step in enumerate(does):
            goal = undoes[max(count - 1 - number, 0) :] or undoes[-1:]
            step["catch"] = [{"errors": self._names(), "goto": goal[0]["name"]}]
            if self._chance(0.5):
                step["errorMappings"] = [{"target": "why", "source": "$local.error"}]
        does[-1]["end"] = self._chance(0.7)
        end = {"type": "succeed"} if self._chance(0.3) else {"type": "fail", "error": "Undone"}
        end["name"] = self._name()
        if self._chance(0.3):
            does[0]["catch"][0]["goto"] = end["name"]
        return [*does, *undoes, end]

    def _constant(self, _: int) -> list[JsonObject]:
        """Constants of about the limit. A later entry of the list may replace them."""
        large = "x" * self._random.choice((LARGE_BYTES // 2, LARGE_BYTES, 2 * LARGE_BYTES))
        mappings = [{"target": target, "source": large} for target in self._random.sample(KEYS, 2)]
        mappings += self._mappings("input", "local")
        attribute = self._random.choice(["inputMappings", "outputMappings", "errorMappings"])
        if attribute == "errorMappings" or self._chance(0.3):
            step = self._call("flaky", **{attribute: mappings})
            step["catch"] = [{"errors": self._names(), "goto": FORWARD}]
            return [step, *self._pass(0)]
        return [self._step("pass", **{attribute: mappings})]

    def _made(self, depth: int) -> list[JsonObject]:
        """A step that makes a value, perhaps one of two, and another step that uses it."""
        key, suffix = self._random.choice(KEYS), self._random.choice(SUFFIXES)
        use = self._random.choice([self._wait, self._time, self._queue, self._foreach, self._choice])
        made = self._makes(key)
        if use.__name__ in FITTING and self._chance(0.5):
            source, suffix = self._random.choice(FITTING[use.__name__])
            made = self._step("pass", outputMappings=[{"target": key, "source": source}])
        if self._chance(0.3):
            either: JsonObject = {"condition": self._random.choice(CONDITIONS), "steps": [self._makes(key)]}
            other = [self._random.choice([self._makes, self._answers])(self._random.choice((key, key, *KEYS)))]
            made = self._step("choice", choices=[either], default={"steps": other} if self._chance(0.7) else {})
            if self._chance(0.5):
                made["outputMappings"] = [{"target": key, "source": f"$local.{key}"}]
        self._wanted = f"$.{key}{suffix}"
        steps = use(depth + 1) if depth < self._depth_max else self._wait(depth)
        self._wanted = None
        return [made, *steps]

    def _makes(self, key: str) -> JsonObject:
        return self._step("pass", outputMappings=[{"target": key, "source": self._random.choice(STRUCTURES)}])

    def _answers(self, _: str) -> JsonObject:
        return {"type": "task", "name": self._name(), "resourceArn": FUNCTION}

    def _back(self, depth: int) -> list[JsonObject]:
        """A loop that ends when its condition says so, or never."""
        first, again = self._block(depth + 1), {"condition": self._random.choice(CONDITIONS)}
        again["goto"] = self._random.choice(first)["name"]
        pause = self._step("wait", duration=self._random.choice(SECONDS[1:])) if self._chance(0.7) else None
        choice = self._step("choice", choices=[again])
        if self._chance(0.1):
            again["goto"] = choice["name"]
        if self._chance(0.2):
            choice["default"] = {"goto": self._random.choice(first)["name"]}
        last = [choice]
        if self._chance(0.2):
            last = [self._call("flaky", catch=[{"errors": self._names(), "goto": again["goto"]}]), choice]
        return [*first, *([] if pause is None else [pause]), *last]

    def _foreach(self, depth: int) -> list[JsonObject]:
        steps = super()._foreach(depth)
        if self._wanted or self._chance(0.4):
            steps[-1]["iterationMapping"]["collection"] = self._path()
        return steps

    def _choice(self, depth: int) -> list[JsonObject]:
        (step,) = super()._choice(depth)
        if self._chance(0.5):
            step["choices"][0]["condition"] = self._condition()
        if self._chance(0.4):
            step["outputMappings"] = self._mappings("local", "local", "input")
        return [step]

    def _ending(self, depth: int) -> list[JsonObject]:
        if self._chance(0.5):
            return self._pass(depth)
        (step,) = super()._ending(depth)
        is_reached_by_jump = self._chance(0.5)
        if is_reached_by_jump:
            choice = self._step("choice", choices=[{"condition": self._condition(), "goto": step["name"]}])
            return [choice, *self._pass(depth), step]
        return [step]

    # Parts

    def _handled(self, step: JsonObject) -> JsonObject:
        if self._chance(0.7):
            step["retry"] = [self._policy() for _ in range(self._random.randint(1, 4))]
        if self._chance(0.7):
            step["catch"] = [{"errors": self._names(), "goto": FORWARD} for _ in range(self._random.randint(1, 4))]
            if self._chance(0.1):
                step["catch"][0]["goto"] = step["name"]
        if self._chance(0.4):
            step["timeoutSeconds"] = self._random.choice(SECONDS[1:])
        if self._chance(0.3):
            step["errorMappings"] = [*self._mappings("local"), {"target": "b", "source": "$local.error"}]
        return step

    def _policy(self) -> JsonObject:
        longest = {"maxIntervalSeconds": self._random.choice(SECONDS[1:4])} if self._chance(0.2) else {}
        return longest | {
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

    def _param(self) -> Any:
        return self._random.choice(["$", self._path(), {"k": self._path(), "a": 1}, {"k": {"a": [self._path()]}}])

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
    is_near_limit = random.random() < (0.6 if "x" * (LARGE_BYTES // 2) in text else 0.05)
    bytes_max = 2 * LARGE_BYTES if is_near_limit else 100_000
    window = random.choice([1, 2, 100])
    items_max = random.choice([2, 3, 50])
    return text, Limits(
        step_data_bytes_max=bytes_max, events_max=400, foreach_concurrency_max=window, foreach_items_max=items_max
    )
