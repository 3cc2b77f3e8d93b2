"""The flows of a run: random flows of the simulation's generator, adapted to real time, and some written by hand."""

from dataclasses import dataclass
from random import Random
from typing import Any

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from tests.chaos.answers import SERVICE, SeenFunctions
from tests.simulation.case import TOKEN_CHARACTERS
from tests.simulation.functions import KEYS, SUB
from tests.simulation.generator import Generator
from tests.simulation.reference import Expected, Reference, Settings

CHILD = "child"
"""The flow that sub-flow steps start; it answers as the function of the same name does."""

PAUSE_SECONDS_MAX = 1


@dataclass(frozen=True)
class FlowSet:
    """All flows by name; those that clients start come first."""

    definitions: dict[str, JsonObject]
    seen: SeenFunctions

    def startable(self) -> list[str]:
        """The flows that a client starts."""
        return [name for name in self.definitions if name != CHILD]

    def expected(self, flow: str, execution: str, given: JsonObject) -> Expected:
        """The expected outcome of an execution."""
        settings = Settings(
            limits=Limits(),
            fails_on_missing=False,
            flow_name=flow,
            execution_name=execution,
            started_time="",
            token="." * TOKEN_CHARACTERS,
        )
        return Reference(self.definitions[flow], self.seen, settings).run(given)


def make_flow_set(seed: int, count: int, seen: SeenFunctions) -> FlowSet:
    """`count` random flows, and those written by hand."""
    definitions = (Generator(Random(f"{seed}:{number}")).definition() for number in range(count))
    generated = {f"random{number}": _adapt(definition) for number, definition in enumerate(definitions)}
    return FlowSet(generated | WRITTEN, seen)


def make_input(random: Random) -> JsonObject:
    """An input that the simulation generates."""
    given: JsonObject = {key: random.randint(0, 3) for key in random.sample(KEYS, random.randint(2, 4))}
    return given | {"list": [random.randint(0, 3) for _ in range(random.randint(0, 3))]}


def _adapt(definition: JsonObject) -> JsonObject:
    """The flow without steps that take long, and without those whose result depends on timing."""
    definition.pop("timeoutSeconds", None)
    _adapt_steps(definition["steps"])
    return definition


def _adapt_steps(steps: list[JsonObject]) -> None:
    for step in steps:
        if step["type"] == "task":
            _adapt_task(step)
        nested = [step, step.get("default", {}), *step.get("choices", ()), *step.get("branches", ())]
        for each in nested:
            _adapt_steps(each.get("steps", []))


def _adapt_task(step: JsonObject) -> None:
    callee = step.get("resourceArn", "").rpartition("/")[2]
    step.pop("timeoutSeconds", None)
    if callee.startswith("slow") and callee != "slow_child":
        step["timeoutSeconds"] = 1  # these never answer, so a fault that interrupts them does not change the result
        for mapping in step.get("errorMappings", ()):  # the cause names the call's time limit, which depends on faults
            mapping["source"] = "$local.error" if mapping["source"] == "$local.cause" else mapping["source"]
    if (
        callee.endswith(CHILD) or callee == SUB
    ):  # another name, or no wait for the end: otherwise the result would depend on the start's timing
        step |= {"resourceArn": f"acs:fnf:::flow/{CHILD}", "pattern": "sync"}
        step.pop("serviceParams", None)
    for policy in step.get("retry", ()):
        policy |= {"intervalSeconds": PAUSE_SECONDS_MAX, "maxAttempts": min(policy.get("maxAttempts", 1), 1)}


def _task(name: str, function: str, **attributes: Any) -> JsonObject:
    arn = f"acs:fc:::services/{SERVICE}/functions/{function}"
    return {"type": "task", "name": name, "resourceArn": arn, **attributes}


def _flow(*steps: JsonObject, **attributes: Any) -> JsonObject:
    return {"version": "v1", "type": "flow", "steps": list(steps), **attributes}


def _ask(name: str) -> JsonObject:
    mappings = [{"target": "token", "source": "$context.task.token"}, {"target": "a", "source": "$input.a"}]
    mappings.append({"target": "who", "source": "$context.step.name"})
    return _task(name, "ask", pattern="waitForCallback", inputMappings=mappings, **_handled("after_" + name))


def _handled(goto: str) -> JsonObject:
    retry = [{"errors": ["E1", "E2"], "intervalSeconds": 1, "maxAttempts": 1}]
    return {"retry": retry, "catch": [{"errors": ["FnF.ALL"], "goto": goto}]}


def _pass(name: str) -> JsonObject:
    return {"type": "pass", "name": name, "outputMappings": [{"target": name, "source": True}]}


WRITTEN: dict[str, JsonObject] = {
    "chain": _flow(
        *(_task(f"bump{number}", "bump") for number in range(3)),
        {"type": "wait", "name": "nap", "duration": 1},
        *(_task(f"calc{number}", "calc") for number in range(3)),
    ),
    "everything": _flow(
        {
            "type": "parallel",
            "name": "both",
            "branches": [
                {
                    "steps": [
                        {
                            "type": "foreach",
                            "name": "each",
                            "iterationMapping": {"collection": "$.list", "item": "it", "index": "b"},
                            "steps": [_task("one", "calc"), _task("two", "flaky", **_handled("end")), _pass("end")],
                        }
                    ]
                },
                {"steps": [_ask("person"), _pass("after_person")]},
                {"steps": [{"type": "wait", "name": "rest", "duration": 1}, _task("late", "echo")]},
                {
                    "steps": [
                        {"type": "task", "name": "sub", "resourceArn": f"acs:fnf:::flow/{CHILD}", "pattern": "sync"}
                        | _handled("after_sub"),
                        _pass("after_sub"),
                    ]
                },
            ],
            "outputMappings": [{"target": "all", "source": "$local"}],
        },
        _task("forgotten", "calc", serviceParams={"InvocationType": "Async"}),
        _task("shaky", "flaky", **_handled("rescue")),
        {"type": "succeed", "name": "well"},
        _task("rescue", "calc"),
    ),
    "people": _flow(_ask("first"), _pass("after_first"), _ask("second"), _pass("after_second")),
    CHILD: _flow(_task("work", "child")),
}
