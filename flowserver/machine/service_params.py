"""The evaluated `serviceParams` of a task: which are refused, which make it asynchronous, a sub-flow's input."""

from typing import Final, get_args

from flowserver.base.json_values import Json, JsonObject, dump_json
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    QueueTarget,
    Target,
    TaskStep,
    TopicTarget,
)
from flowserver.language.targets import ASYNC, INPUT, INVOCATION_TYPE, known_parameters
from flowserver.machine.mappings import evaluate_params
from flowserver.machine.messages import Failure

_OWNERS: Final[dict[type, str]] = {
    FunctionTarget: "FC",
    FlowTarget: "FnF",
    ActionTarget: "fnf",
    QueueTarget: "MNS",
    TopicTarget: "MNS",
}
"""How the error begins if a parameter cannot be used. Of actions only `fnf:StartExecution` checks its parameters."""
assert set(_OWNERS) == set(get_args(Target))


def refusal(target: Target, params: dict[str, Json] | None) -> Failure | None:
    """Why the target does not take the parameters, or None. Values of paths are checked only here, unlike constants."""
    known = known_parameters(target)
    for name, value in (params or {}).items():
        parameter = None if known is None else known.get(name)
        if parameter is not None and not parameter.accepts(value):
            return Failure(f"{_OWNERS[type(target)]}.InvalidArgument", f"serviceParams.{name} {parameter.rule}")
    return None


def is_asynchronous(step: TaskStep, step_input: JsonObject) -> bool:
    """Whether the step has its function invoked asynchronously, as a task of Function Compute."""
    params = step.service_params
    if params is None or INVOCATION_TYPE not in params or not isinstance(step.target, FunctionTarget):
        return False
    return evaluate_params({INVOCATION_TYPE: params[INVOCATION_TYPE]}, step_input, None) == {INVOCATION_TYPE: ASYNC}


def child_input(params: dict[str, Json] | None, step_input: JsonObject) -> str:
    """JSON text of a sub-flow's input: the parameter (an object, or JSON text of one), else the step's whole input."""
    given = (params or {}).get(INPUT)
    if given is None:
        return dump_json(step_input)
    return given if isinstance(given, str) else dump_json(given)


def failure_of_action(failure: Failure, service: str) -> Failure:
    """The failure of a call of another product's API: the error begins with the product's name, or is the server's."""
    if failure.error.startswith(("FC.", "FnF.", f"{service}.")):
        return failure
    return Failure(f"{service}.{failure.error}", failure.cause)
