"""The JSON Schema of flow test files, made from the tables by which they are read."""

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.editing.schema_parts import DRAFT, described, object_schema, one_of, ref
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.fields import FILE, HOLDS, LISTS_OF_STEPS, OBJECTS, PROPERTIES_MAX, TABLES, TIMES_MAX
from flowserver.flowtests.property_names import OF_EVERY_FLOW
from flowserver.flowtests.real_calls import CALLEE_PATTERN


def flow_test_schema(limits: Limits) -> JsonObject:
    """The schema of `*.flowtest.yaml` files under these limits."""
    held: dict[str, JsonObject] = {name: ref(kind) for name, kind in HOLDS.items()}
    held |= {name: _table(name) for name in TABLES}
    held |= {name: {"type": "string"} for name in LISTS_OF_STEPS}
    text: JsonObject = {"type": "string"}
    undoing: JsonObject = {"minProperties": 1, "maxProperties": PROPERTIES_MAX}
    held["faults"] = {"enum": [*map(str, FaultKind)]}
    held["ignore"] = {"enum": [*OF_EVERY_FLOW]}
    held["collections"] = {"type": "integer", "minimum": 0, "maximum": limits.foreach_items_max}
    held["compensated"] = {"type": "object", **undoing, "additionalProperties": one_of([text, ref("undo")])}
    held["always"] = one_of([text, ref("claim")])
    held["calls"] = {"type": "object", "additionalProperties": ref("expectedCalls")}
    definitions: JsonObject = {
        **{name: object_schema(kind, limits, held) for name, kind in OBJECTS.items() if kind is not FILE},
        "replies": _alone_or_in_a_list("reply"),
        "reports": _alone_or_in_a_list("report"),
        "repliesOrReal": _unless_real("replies", ref("realCall")),
        "reportsOrReal": _unless_real("reports", ref("realCall")),
        "repliesOrSubFlow": _unless_real("replies", ref("subFlow")),
        "repliesOrEither": _unless_real(
            "replies",
            {
                "if": {"properties": {"real": {"type": "string", "pattern": CALLEE_PATTERN}}},
                "then": ref("realCall"),
                "else": ref("subFlow"),
            },
        ),
        "expectedCalls": one_of(
            [{"type": "integer", "minimum": 0, "maximum": TIMES_MAX}, {"type": "array"}, ref("calls")]
        ),
    }
    head: JsonObject = {"$schema": DRAFT, **described("Tests of a flow, for flowserver test.")}
    return head | object_schema(FILE, limits, held) | {"definitions": definitions}


def _table(name: str) -> JsonObject:
    of_table = {"flows": "repliesOrSubFlow", "steps": "repliesOrEither", "callbacks": "reportsOrReal"}
    return {"type": "object", "additionalProperties": ref(of_table.get(name, "repliesOrReal"))}


def _unless_real(name: str, real: JsonObject) -> JsonObject:
    return {"if": {"type": "object", "required": ["real"]}, "then": real, "else": ref(name)}


def _alone_or_in_a_list(name: str) -> JsonObject:
    return one_of([ref(name), {"type": "array", "minItems": 1, "items": ref(name)}])
