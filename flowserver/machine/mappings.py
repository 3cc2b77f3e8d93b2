"""Input and output mappings, serviceParams and `$context`: how documents are made from documents."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from flowserver.base.json_values import Json, JsonObject
from flowserver.base.limits import Limits
from flowserver.expressions.fuel import Fuel, OutOfFuel
from flowserver.expressions.paths import MISSING, find
from flowserver.expressions.references import Reference, Source, resolve
from flowserver.language.graph import Mappings, ParamPath, ParamValue
from flowserver.machine.messages import Failure, TooLarge

MissingSource = Literal["null", "fail"]

TokenMaker = Callable[[str, int, int, int | None], str]
"""(execution_id, scope_id, entered_event_id, wait_id or None) -> task token; the same arguments give the same token."""

RUNTIME_ERROR = "FnF.RuntimeError"

ELEMENT_BYTES_MIN: Final = 2
"""What an element of an array takes in compact JSON, its comma included."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything that the core knows of the outside: the instant (ms), the limits, and how tokens are made."""

    now_ms: int
    limits: Limits
    missing_source: MissingSource
    token_for: TokenMaker


def fuel_for(bytes_max: int) -> Fuel:
    """How many elements `[*]` may select for a document of that many bytes; more would not fit into it.

    Every `[*]` makes a new array, which is in memory before the size of the whole document is looked at.
    """
    return Fuel(bytes_max // ELEMENT_BYTES_MIN)


def apply_mappings(
    mappings: Mappings,
    *,
    input: Json,
    local: Json,
    context: JsonObject,
    missing_source: MissingSource,
    fuel: Fuel | None,
) -> JsonObject | Failure:
    """Build the object that a mapping list describes. Of entries with the same target the last wins.

    A source that is not found gives null, or fails with FnF.RuntimeError under `missing_source=fail`.
    So does a list whose `[*]` together select more than `fuel` (of `step_data_bytes_max`) has room for.
    """
    built: JsonObject = {}
    for mapping in mappings:
        try:
            value = resolve(mapping.source, input=input, local=local, context=context, fuel=fuel)
        except OutOfFuel:
            return _too_many(f"up to the mapping target {mapping.target!r}", fuel, "step_data_bytes_max")
        if value is MISSING:
            if missing_source == "fail":
                return Failure(RUNTIME_ERROR, _not_found(mapping.target, mapping.source))
            value = None
        built[mapping.target] = value
    return built


def _too_many(where: str, fuel: Fuel | None, limit: str) -> TooLarge:
    assert fuel is not None, "only a fuel that was given ends"
    return TooLarge(RUNTIME_ERROR, f"{where}: `[*]` selects more than {fuel.limit} elements, half the limit {limit}")


def _not_found(target: str, source: Source) -> str:
    assert isinstance(source, Reference), "a constant is always found"
    return f"the source ${source.root}{source.path.text[1:]} of the mapping target {target!r} was not found"


def evaluate_params(
    params: dict[str, ParamValue], step_input: JsonObject, fuel: Fuel | None
) -> dict[str, Json] | Failure:
    """serviceParams with every `$` and `$.path` replaced from the step's input; a missing path fails.

    So does a `[*]` that selects more than `fuel` (of `request_bytes_max`) has room for, all params together.
    """
    evaluated: dict[str, Json] = {}
    for name, value in params.items():
        try:
            result = _evaluate_param(value, step_input, fuel)
        except OutOfFuel:
            return _too_many(f"serviceParams.{name}", fuel, "request_bytes_max")
        if isinstance(result, _NotFound):
            return Failure(RUNTIME_ERROR, f"serviceParams.{name}: {result.text} was not found in the step's input")
        evaluated[name] = result
    return evaluated


@dataclass(frozen=True, slots=True)
class _NotFound:
    text: str


def _evaluate_param(value: ParamValue, step_input: JsonObject, fuel: Fuel | None) -> Json | _NotFound:
    if isinstance(value, ParamPath):
        found = find(value.path, step_input, fuel)
        return _NotFound(value.path.text) if found is MISSING else found
    if isinstance(value, dict):
        pairs = {key: _evaluate_param(item, step_input, fuel) for key, item in value.items()}
        return next((item for item in pairs.values() if isinstance(item, _NotFound)), pairs)
    if isinstance(value, list):
        items = [_evaluate_param(item, step_input, fuel) for item in value]
        return next((item for item in items if isinstance(item, _NotFound)), items)
    return value
