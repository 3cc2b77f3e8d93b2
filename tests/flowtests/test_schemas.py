"""JSON Schemas in test files: what an output must fit, and by what inputs are made."""

import json
from random import Random
from typing import Any

import pytest

from flowserver.base.limits import Limits
from flowserver.flowtests.choices import Choices
from flowserver.flowtests.given_definition import load_with
from flowserver.flowtests.json_schemas import compiled
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.schema_values import object_for, unusable_parts
from flowserver.flowtests.simulating import simulate_file
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.parser import parse

STEPS = """
  - {type: task, name: Get, resourceArn: 'acs:fc:::functions/get'}
"""
TOTAL = "{type: object, required: [total], properties: {total: {type: integer, minimum: 0}}}"


def messages(outcomes):
    return [finding.message for outcome in outcomes for finding in outcome.failures]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("{total: 3}", None),
        ("{total: -1}", "$.total: -1 is less than the minimum of 0"),
        ("{total: '3'}", "$.total: '3' is not of type 'integer'"),
        ("{}", "$: 'total' is a required property"),
    ],
)
def test_a_test_expects_that_its_output_fits(run_tests, returned, message):
    tests = f"functions: {{get: {{return: {returned}}}}}\ntests: [{{name: a, expect: {{outputSchema: {TOTAL}}}}}]"
    found = messages(run_tests(STEPS, tests))
    assert found == ([] if message is None else [f"the output does not fit its schema, {message}"])


def test_all_mistakes_of_an_output_are_shown_up_to_a_number(run_tests):
    schema = "{required: [id, total], properties: {total: {type: integer}, name: {type: string}}}"
    returned = "{total: none, name: 3}"
    tests = f"functions: {{get: {{return: {returned}}}}}\ntests: [{{name: a, expect: {{outputSchema: {schema}}}}}]"
    (message,) = messages(run_tests(STEPS, tests))
    assert message == (
        "the output does not fit its schema, $: 'id' is a required property; "
        "$.total: 'none' is not of type 'integer'; $.name: 3 is not of type 'string'"
    )
    many = f"{{required: {[f'a{n}' for n in range(7)]}}}"
    tests = f"functions: {{get: {{return: {{total: 1}}}}}}\ntests: [{{name: a, expect: {{outputSchema: {many}}}}}]"
    (message,) = messages(run_tests(STEPS, tests))
    assert message.count("is a required property") == 5
    assert message.endswith("; and more")


def test_an_execution_that_fails_has_no_output_to_fit(run_tests):
    tests = f"functions: {{get: {{error: E}}}}\ntests: [{{name: a, expect: {{status: Any, outputSchema: {TOTAL}}}}}]"
    assert messages(run_tests(STEPS, tests)) == []


def test_a_schema_fetches_nothing(run_tests):
    schema = "{$ref: 'http://127.0.0.1:9/schema.json'}"
    tests = f"functions: {{get: {{}}}}\ntests: [{{name: a, expect: {{outputSchema: {schema}}}}}]"
    (message,) = messages(run_tests(STEPS, tests))
    assert message.startswith("the output does not fit its schema, the schema cannot be applied: ")


@pytest.mark.parametrize("part", ["[1]", "{type: 5}", "{required: 5}"])
def test_a_reference_to_what_is_no_schema_fails_the_test(run_tests, part):
    schema = f"{{$ref: '#/x', x: {part}}}"
    tests = f"functions: {{get: {{return: {{a: 1}}}}}}\ntests: [{{name: a, expect: {{outputSchema: {schema}}}}}]"
    (message,) = messages(run_tests(STEPS, tests))
    assert message.startswith("the output does not fit its schema, the schema cannot be applied: ")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            "tests: [{name: a, expect: {outputSchema: {properties: {n: {type: numbr}}}}}]",
            "2:60 bad-value: this is no JSON Schema: 'numbr' is not valid under any of the given schemas",
        ),
        (
            "tests: [{name: a, expect: {outputSchema: {properties: {n: {pattern: '(?=a)b'}}}}}]",
            "2:60 bad-value: this is no JSON Schema: the regular expression `(?=a)b` cannot be used: look-around",
        ),
        (
            "tests: [{name: a, expect: {outputSchema: {patternProperties: {'(': {}}}}}]",
            "2:43 bad-value: this is no JSON Schema: the regular expression `(` cannot be used: unclosed group",
        ),
        (
            "tests: [{name: a, expect: {outputSchema: {patternProperties: {a: {}}, unevaluatedProperties: false}}}]",
            "2:71 bad-value: this is no JSON Schema: `patternProperties` cannot be used together with",
        ),
        ("sim: {inputSchema: {pattern: x}}", "2:21 bad-value: values cannot be made by `pattern`"),
        ("sim: {inputSchema: {properties: {a: {format: ipv4}}}}", "2:38 bad-value: values can be made for the formats"),
        ("sim: {inputSchema: {items: {$ref: '#/$defs/x'}}}", "2:29 bad-value: `$ref` leads to no schema in this one"),
        ("sim: {inputSchema: {$ref: '#/default', default: {minItems: x}}}", "2:21 bad-value: `$ref` leads to no"),
        ("sim: {inputSchema: {type: array}}", "2:20 bad-value: no object was found that fits this schema"),
        (
            "sim: {inputSchema: {required: [a], properties: {a: {minimum: 2, maximum: 1, type: integer}}}}",
            "2:20 bad-value: no object was found that fits this schema",
        ),
        ("sim: {inputSchema: {$schema: [x]}}", "2:21 bad-value: this is no JSON Schema: `$schema` is not the URI"),
        ("sim: {inputSchema: {$schema: 'http://[x'}}", "2:21 bad-value: this is no JSON Schema: `$schema` is not the"),
        (
            "sim: {inputSchema: {required: [a], properties: {a: {minLength: 10000000000}}}}",
            "2:53 bad-value: values are made with a `minLength` of at most 100000",
        ),
        (
            f"sim: {{inputSchema: {{required: [a], properties: {{a: {{type: number, minimum: 1{'0' * 400}}}}}}}}}",
            "2:20 bad-value: no object was found that fits this schema",
        ),
        ("sim: {runs: 0}", "2:13 bad-value: `runs` must be from 1 to 1000000"),
        ("sim: {faults: [slwo]}", "2:16 bad-value: `faults` is a list of error, unexpected-error, 5xx"),
        ("sim: {collections: [-1]}", "2:21 bad-value: `collections` is a list of sizes from 0 to 10000"),
        ("sim: {ignore: [ended]}", "2:16 bad-value: `ignore` is a list of ends, own-mistake, undone"),
        ("sim: {atMostOnce: [Gte]}", "2:20 unknown-resource: the flow has no step `Gte`, and none that calls it"),
        ("input: {}", "1:1 missing-attribute: a flow test file needs `tests`, or at least `sim`"),
    ],
)
def test_mistakes_have_places(mistakes, text, mistake):
    found = mistakes(STEPS, text)
    assert any(each.startswith(mistake) for each in found), found
    assert len({each.partition(" ")[0] for each in found}) == len(found), "one mistake is said twice"


WITHOUT_END = "(a+)+$"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": WITHOUT_END}, "a" * 60 + "!"),
        ({"properties": {"next": {"$ref": "#"}}, "pattern": WITHOUT_END}, {"next": "a" * 60 + "!"}),
        ({"patternProperties": {WITHOUT_END: False}}, {"a" * 60 + "!": 1}),
        ({"patternProperties": {WITHOUT_END: False}, "additionalProperties": False}, {"a" * 60 + "!": 1}),
        ({"propertyNames": {"pattern": WITHOUT_END}}, {"a" * 60 + "!": 1}),
        ({"type": "array", "contains": {"pattern": WITHOUT_END}}, ["a" * 60 + "!"]),
        ({"allOf": [{"$ref": "#/x"}], "x": {"items": {"pattern": WITHOUT_END}}}, ["a" * 60 + "!"]),
    ],
)
@pytest.mark.parametrize("draft", ["draft-07", "draft/2019-09", "draft/2020-12"])
def test_an_expression_that_goes_back_without_end_is_decided_at_once(schema, value, draft):
    http = "http" if draft[5] == "-" else "https"
    named = {"$schema": f"{http}://json-schema.org/{draft}/schema", **schema}
    is_right = "patternProperties" in schema and "additionalProperties" not in schema
    assert (compiled(named).mistake_in(value) is None) == is_right


def test_expressions_find_a_part_of_a_text_or_name():
    schema = {
        "patternProperties": {"^x-": {"type": "integer"}, "é$": True},
        "properties": {"id": {"pattern": r"\d{2}$"}},
        "additionalProperties": False,
    }
    valid = compiled(schema)
    assert valid.mistake_in({"id": "a12", "x-a": 1, "caf\u00e9": {}, "\ud800é": 2}) is None
    assert valid.mistake_in({"id": "12a"}).message == r"$.id: '12a' does not match '\\d{2}$'"
    # Older releases of the library write the path as `$.x-a`.
    assert valid.mistake_in({"x-a": "1"}).message.endswith(": '1' is not of type 'integer'")
    assert valid.mistake_in({"y": 1}).message == ("$: Additional properties are not allowed ('y' was unexpected)")


def test_outputs_of_all_runs_fit(tmp_path):
    (tmp_path / "flow.yaml").write_text(f"version: v1\ntype: flow\nsteps:{STEPS}")
    text = f"flow: flow.yaml\nfunctions: {{get: {{return: {{total: 1}}}}}}\nsim: {{outputSchema: {TOTAL}}}"
    file = Loader(Limits()).load(tmp_path / "flow.flowtest.yaml", text)
    assert simulate_file(file, Rules(Limits())).failures == ()
    wrong = Loader(Limits()).load(tmp_path / "flow.flowtest.yaml", text.replace("total: 1", "total: -1"))
    (failure,) = simulate_file(wrong, Rules(Limits())).failures
    assert failure.property == "outputSchema"
    assert failure.expected["outputSchema"]["required"] == ["total"]


ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "items"],
    "properties": {
        "id": {"type": "string", "minLength": 2, "maxLength": 5},
        "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
        "express": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "note": {"type": ["string", "null"]},
        "pay": {
            "oneOf": [
                {"const": "card"},
                {"type": "object", "required": ["bank"], "properties": {"bank": {"enum": [1]}}},
            ]
        },
    },
    "additionalProperties": False,
    "$defs": {
        "item": {
            "type": "object",
            "required": ["count", "price"],
            "properties": {
                "count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 100},
                "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.25},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            },
        }
    },
}


def values_of(schema: dict[str, Any], count: int = 200, sizes: tuple[int, ...] = (0, 1, 2)) -> list[Any]:
    valid = compiled(schema)
    tries = (Choices(Random(number), sizes) for number in range(count))
    return [object_for(valid, iter([Choices()])), *(object_for(valid, iter([each])) for each in tries)]


def test_inputs_fit_and_reach_the_bounds():
    plain, *drawn = values_of(ORDER)
    assert None not in (plain, *drawn)
    assert set(plain) == set(ORDER["properties"])
    assert {len(each["id"]) for each in drawn} >= {2, 5}
    assert {len(each["items"]) for each in drawn} == {1, 2}
    items = [item for each in drawn for item in each["items"]]
    assert {1, 99} <= {item["count"] for item in items}
    assert {0.25} < {item["price"] for item in items}
    assert {each.get("express") for each in drawn} == {True, False, None}
    assert {json.dumps(each.get("pay")) for each in drawn} == {'"card"', '{"bank": 1}', "null"}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "integer", "multipleOf": 7, "minimum": 10}}, "required": ["a"]},
        {"properties": {"a": {"type": "number", "maximum": -3.5}}, "required": ["a"]},
        {"properties": {"a": {"examples": [[1], {"b": 2}]}}, "required": ["a"]},
        {"required": ["a"]},
        {"properties": {"a": {"type": "null"}}, "required": ["a"]},
        {"properties": {"a": {"$ref": "#"}}},
        {
            "anyOf": [{"properties": {"a": {"const": 1}}}, {"required": ["b"], "properties": {"b": {}}}],
            "type": "object",
        },
        {"properties": {"a": {"type": "array", "maxItems": 1, "items": {"type": "integer"}}}, "required": ["a"]},
        {"properties": {"a": {"type": "string", "minLength": 50}}, "required": ["a"]},
    ],
)
def test_all_values_of_a_schema_fit(schema):
    assert list(unusable_parts(schema)) == []
    assert None not in values_of(schema, 40)


def test_a_schema_that_refers_to_itself_in_many_members_makes_small_objects():
    schema = {"type": "object", "properties": {f"a{number}": {"$ref": "#"} for number in range(40)}}
    assert all(len(json.dumps(each)) < 50_000 for each in values_of(schema, 5))


@pytest.mark.parametrize("sizes", [(100_000, 100_000), (100, 100, 100, 100)])
def test_no_object_is_made_by_a_schema_that_asks_for_too_many_values(sizes):
    schema: dict[str, Any] = {"type": "integer"}
    for size in sizes:
        schema = {"type": "array", "minItems": size, "items": schema}
    document = {"type": "object", "required": ["a"], "properties": {"a": schema}}
    assert list(unusable_parts(document)) == []
    assert object_for(compiled(document), iter([Choices()])) is None


def test_inputs_of_runs_fit_and_the_shortest_one_does(tmp_path):
    (tmp_path / "flow.yaml").write_text("version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n")
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"enum": [1, 2]}, "b": {"type": "string"}}}
    sim = {"inputSchema": schema, "always": ["$.input.a == 1"]}
    file = Loader(Limits()).load(tmp_path / "x.flowtest.yaml", json.dumps({"flow": "flow.yaml", "sim": sim}))
    (failure,) = simulate_file(file, Rules(Limits())).failures
    assert failure.run.case.input == {"a": 2}


def test_a_server_applies_no_schemas():
    text = f"version: v1\ntype: flow\nsteps:{STEPS}"
    flow = parse(text, Limits()).flow
    tests = f"flow: flow.yaml\ntests: [{{name: a, expect: {{outputSchema: {TOTAL}}}}}]"
    with pytest.raises(DefinitionRejected) as rejected:
        load_with(text, flow, tests, Limits(), Work())
    assert rejected.value.message == "line 2, column 42: a server does not apply JSON Schemas"
    of_runs = f"flow: flow.yaml\nsim: {{outputSchema: {TOTAL}, inputSchema: {{pattern: x}}}}"
    file = load_with(text, flow, of_runs, Limits(), Work())
    assert (file.simulation.properties, file.simulation.input_schema) == ((), None)
