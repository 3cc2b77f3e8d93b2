"""The JSON Schema of definitions, made from the tables by which the parser reads them."""

from flowserver.analysis.errors_and_retries import SERVER_ERRORS
from flowserver.base.json_values import Json, JsonObject
from flowserver.base.limits import Limits
from flowserver.editing.schema_parts import DRAFT, described, field_schema, object_schema, one_of, ref
from flowserver.language.fields import FLOW, HOLDS, OBJECTS, STEP, STEPS, ObjectKind
from flowserver.language.targets import TARGET_FORMS, Parameter, Parameters, TargetForm

_PATH: JsonObject = {"type": "string", "pattern": r"^\$($|[.\[])"}


def flow_schema(limits: Limits) -> JsonObject:
    """The schema of definitions under these limits, for strict checks."""
    held: dict[str, JsonObject] = {name: ref(kind) for name, kind in HOLDS.items()}
    held["errors"] = one_of([{"enum": [*SERVER_ERRORS]}, {"type": "string"}])
    definitions: JsonObject = {STEP: _any_step(limits)}
    for name, kind in STEPS.items():
        definitions[_name_of(name)] = _step(name, kind, limits, held)
    for name, kind in OBJECTS.items():
        if kind is not FLOW:
            definitions[name] = object_schema(kind, limits, held)
    for form in TARGET_FORMS:
        if form.kind.parameters is not None:
            definitions[_parameters_of(form)] = _parameters(form.kind.parameters)
    head: JsonObject = {"$schema": DRAFT, **described("A flow of version v1: flowserver, or CloudFlow (FnF).")}
    return head | object_schema(FLOW, limits, held) | {"definitions": definitions}


def _name_of(step: str) -> str:
    return f"{step}Step"


def _any_step(limits: Limits) -> JsonObject:
    """A step of any kind; which one is decided by its `type`, so that editors report mistakes of that kind alone."""
    fields = STEPS["pass"].fields
    kinds: list[Json] = [_when("type", {"const": name}, ref(_name_of(name))) for name in STEPS]
    return {
        "title": "a step",
        "type": "object",
        "required": ["type", "name"],
        "properties": {
            "type": {**described(fields["type"].doc), "enum": [*STEPS]},
            "name": field_schema(fields["name"], limits),
        },
        "allOf": kinds,
    }


def _step(name: str, kind: ObjectKind, limits: Limits, held: dict[str, JsonObject]) -> JsonObject:
    schema = object_schema(kind, limits, held)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["type"] = {**described(kind.fields["type"].doc), "const": name}
    if "resourceArn" in kind.fields:
        schema["allOf"] = [_when(form.attribute, {"pattern": form.pattern}, _target(form)) for form in TARGET_FORMS]
    return schema


def _when(attribute: str, fits: JsonObject, then: JsonObject) -> JsonObject:
    return {"if": {"required": [attribute], "properties": {attribute: fits}}, "then": then}


def _target(form: TargetForm) -> JsonObject:
    """What tasks with a target of this form can have."""
    kind = form.kind
    properties: JsonObject = {"pattern": {"enum": [*map(str, kind.patterns)]}}
    if kind.parameters is None:
        return {"properties": properties}
    properties["serviceParams"] = ref(_parameters_of(form))
    if any(parameter.is_required for parameter in kind.parameters.values()):
        return {"required": ["serviceParams"], "properties": properties}
    return {"properties": properties}


def _parameters_of(form: TargetForm) -> str:
    return f"{form.name}Parameters"


def _parameters(parameters: Parameters) -> JsonObject:
    schema: JsonObject = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _parameter(parameter) for name, parameter in parameters.items()},
    }
    required: list[Json] = [name for name, parameter in parameters.items() if parameter.is_required]
    return schema | ({"required": required} if required else {})


def _parameter(parameter: Parameter) -> JsonObject:
    rule = f"`{parameter.name}` {parameter.rule}, or a path." if parameter.rule else "Any value, or a path."
    schema = described(rule)
    if parameter.words:
        return schema | one_of([{"enum": [*parameter.words]}, _PATH])
    if parameter.whole is not None:
        least, most = parameter.whole
        whole: JsonObject = {"type": ["integer", "null"], "minimum": least, "maximum": most}
        return schema | one_of([whole, _PATH])
    return schema
