"""The JSON Schema of flow test files, made from the tables by which they are read."""

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.editing.schema_parts import DRAFT, described, object_schema, one_of, ref
from flowserver.flowtests.fields import FILE, HOLDS, MAY_RUN, OBJECTS, PROPERTIES_MAX, REAL, REPORT, TABLES, TIMES_MAX

_LISTS_OF_STEPS = ("path", "pathIncludes", "never", "atMostOnce")


def flow_test_schema(limits: Limits) -> JsonObject:
    """The schema of `*.flowtest.yaml` files under these limits."""
    held: dict[str, JsonObject] = {name: ref(kind) for name, kind in HOLDS.items()}
    held |= {name: _table(name) for name in TABLES}
    held |= {name: {"type": "string"} for name in _LISTS_OF_STEPS}
    text: JsonObject = {"type": "string"}
    undoing: JsonObject = {"minProperties": 1, "maxProperties": PROPERTIES_MAX}
    held["compensated"] = {"type": "object", **undoing, "additionalProperties": one_of([text, ref("undo")])}
    held["always"] = one_of([text, ref("claim")])
    held["calls"] = {"type": "object", "additionalProperties": ref("expectedCalls")}
    definitions: JsonObject = {
        **{name: object_schema(kind, limits, held) for name, kind in OBJECTS.items() if kind is not FILE},
        "replies": _alone_or_in_a_list("reply"),
        "reports": _alone_or_in_a_list("report"),
        "repliesOrSubFlow": {
            "if": {"type": "object", "required": [*REAL.fields]},
            "then": ref("subFlow"),
            "else": ref("replies"),
        },
        "expectedCalls": one_of(
            [{"type": "integer", "minimum": 0, "maximum": TIMES_MAX}, {"type": "array"}, ref("calls")]
        ),
    }
    head: JsonObject = {"$schema": DRAFT, **described("Tests of a flow, for flowserver test.")}
    return head | object_schema(FILE, limits, held) | {"definitions": definitions}


def _table(name: str) -> JsonObject:
    kind = "reports" if TABLES[name] is REPORT else "repliesOrSubFlow" if name in MAY_RUN else "replies"
    return {"type": "object", "additionalProperties": ref(kind)}


def _alone_or_in_a_list(name: str) -> JsonObject:
    return one_of([ref(name), {"type": "array", "minItems": 1, "items": ref(name)}])
