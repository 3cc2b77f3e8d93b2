"""Input and output mappings, serviceParams and `$context`: how documents are made from documents."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from flowserver.base.json_values import Json, JsonObject
from flowserver.base.limits import Limits
from flowserver.expressions.paths import MISSING, find
from flowserver.expressions.references import Reference, Source, resolve
from flowserver.language.graph import Mappings, ParamPath, ParamValue
from flowserver.machine.messages import Failure

MissingSource = Literal["null", "fail"]

TokenMaker = Callable[[str, int, int, int | None], str]
"""(execution_id, scope_id, entered_event_id, wait_id or None) -> task token; the same arguments give the same token."""

RUNTIME_ERROR = "FnF.RuntimeError"


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything the core may know of the outside: the instant (ms), the limits, and how tokens are made."""

    now_ms: int
    limits: Limits
    missing_source: MissingSource
    token_for: TokenMaker


def apply_mappings(
    mappings: Mappings, *, input: Json, local: Json, context: JsonObject, missing_source: MissingSource
) -> JsonObject | Failure:
    """Build the object that a mapping list describes; entries of equal target: the last wins.

    A source that is not found gives null, or fails with FnF.RuntimeError under `missing_source=fail`.
    """
    built: JsonObject = {}
    for mapping in mappings:
        value = resolve(mapping.source, input=input, local=local, context=context)
        if value is MISSING:
            if missing_source == "fail":
                return Failure(RUNTIME_ERROR, _not_found(mapping.target, mapping.source))
            value = None
        built[mapping.target] = value
    return built


def _not_found(target: str, source: Source) -> str:
    assert isinstance(source, Reference), "a constant is always found"
    return f"the source ${source.root}{source.path.text[1:]} of the mapping target {target!r} was not found"


def evaluate_params(params: dict[str, ParamValue], step_input: JsonObject) -> dict[str, Json] | Failure:
    """serviceParams with every `$` and `$.path` replaced from the step's input; a missing path fails."""
    evaluated: dict[str, Json] = {}
    for name, value in params.items():
        result = _evaluate_param(value, step_input)
        if isinstance(result, _NotFound):
            return Failure(RUNTIME_ERROR, f"serviceParams.{name}: {result.text} was not found in the step's input")
        evaluated[name] = result
    return evaluated


@dataclass(frozen=True, slots=True)
class _NotFound:
    text: str


def _evaluate_param(value: ParamValue, step_input: JsonObject) -> Json | _NotFound:
    if isinstance(value, ParamPath):
        found = find(value.path, step_input)
        return _NotFound(value.path.text) if found is MISSING else found
    if isinstance(value, dict):
        pairs = {key: _evaluate_param(item, step_input) for key, item in value.items()}
        return next((item for item in pairs.values() if isinstance(item, _NotFound)), pairs)
    if isinstance(value, list):
        items = [_evaluate_param(item, step_input) for item in value]
        return next((item for item in items if isinstance(item, _NotFound)), items)
    return value
