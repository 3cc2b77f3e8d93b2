"""The JSON Schema of definitions against the parser, both ways."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft7Validator

from flowserver.base.limits import Limits
from flowserver.cli.schema import FOLDER
from flowserver.editing.flow_schema import flow_schema
from flowserver.language.diagnostics import DIAGNOSTICS
from flowserver.language.fields import KINDS, Field, ObjectKind, Shape
from tests.conformance.cases import FlowCase, flow_cases
from tests.docs.generate import schema_files
from tests.docs.pages import DOCS, ROOT, blocks, pages
from tests.editing.schema_cases import FULL, NO_DATA, Place, data_of, errors_of, objects_of
from tests.language.test_properties import NEAR_FLOWS, UNTIMED, VALUES
from tests.simulation.generator import Generator

LIMITS = Limits()
SCHEMA = flow_schema(LIMITS)
VALIDATOR = Draft7Validator(SCHEMA)
OF_PROFILES = {profile: Draft7Validator(flow_schema(Limits.of(profile))) for profile in ("default", "cloud")}
PAGE = DOCS / "how-to" / "edit-flows.md"
RANDOM_FLOWS = 120


def check(text: str, limits: Limits = LIMITS, validator: Draft7Validator = VALIDATOR) -> bool:
    """Whether the parser accepts a text; the schema must then accept it, too."""
    accepted = not errors_of(text, limits)
    if accepted:
        assert [error.message for error in validator.iter_errors(data_of(text))] == []
    return accepted


def test_it_is_a_schema_of_draft_7() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == Draft7Validator.META_SCHEMA["$schema"]


def test_every_attribute_has_its_description() -> None:
    definitions: Any = SCHEMA["definitions"]
    by_title = {schema["title"]: schema for schema in [SCHEMA, *definitions.values()] if "title" in schema}
    for kind in KINDS:
        properties = by_title[kind.title]["properties"]
        assert list(properties) == list(kind.fields)
        for name, field in kind.fields.items():
            assert properties[name]["description"].startswith(field.doc.replace("`", ""))


@pytest.mark.parametrize("case", flow_cases(), ids=str)
def test_conformance_cases(case: FlowCase) -> None:
    assert check(case.flow, LIMITS.of(case.limits), OF_PROFILES[case.limits]) == (case.refused is None)


def _published() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "examples").rglob("*.yaml")):
        yield str(file.relative_to(ROOT)), file.read_text("utf-8")
    for page in pages():
        for block in blocks(page):
            if block.language == "yaml":
                yield str(block), block.text


def test_examples_and_pages() -> None:
    found = {name for name, text in _published() if re.search("^version: v1", text, re.M) and check(text)}
    assert {"examples/saga/flow.yaml", "examples/polling/flow.yaml", "examples/callback/flow.yaml"} <= found
    assert len(found) > 30


def test_random_flows_of_the_simulation() -> None:
    for seed in range(RANDOM_FLOWS):
        assert check(json.dumps(Generator(random.Random(seed)).definition()))


@UNTIMED
@given(NEAR_FLOWS)
def test_the_parser_refuses_what_the_schema_refuses(flow: Any) -> None:
    check(json.dumps(flow))


@UNTIMED
@given(VALUES)
def test_the_parser_refuses_values_that_the_schema_refuses(value: Any) -> None:
    check(json.dumps(value))


def test_the_full_flow_has_every_attribute_of_every_kind() -> None:
    assert check(json.dumps(FULL))
    written = {(place.kind.title, name) for place in objects_of(FULL) for name in place.of(FULL)}
    assert written == {(kind.title, name) for kind in KINDS for name in kind.fields}


# Mutations: one mistake in the full flow, which both refuse.

WRONG: dict[Shape, Any] = {
    Shape.TEXT: 7,
    Shape.WHOLE: "seven",
    Shape.NUMBER: "seven",
    Shape.BOOLEAN: "yes",
    Shape.LIST: {"a": 1},
    Shape.MAP: [1],
}
"""For each shape a value of another one."""


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda given: given.__setitem__(name, value)


def _without(*names: str) -> Callable[[dict[str, Any]], None]:
    return lambda given: [given.pop(name, None) for name in names] and None


def _of_field(field: Field, given: Any) -> Iterator[tuple[str, Any]]:
    """Values that the attribute cannot have."""
    if Shape.ANY in field.shapes:
        return
    yield "null", None
    for shape, value in WRONG.items():
        if shape in field.shapes:
            fits_other = any(_fits(other, value) for other in field.shapes)
            yield f"no {shape.value}", 1.5 if fits_other else value
    if field.words:
        yield "unknown word", "nothing"
    if field.pattern:
        yield "not matching", "!"
    most = field.bounds.most_of(LIMITS)
    if isinstance(given, list) and field.bounds.least:
        yield "empty list", []
    if isinstance(given, list) and most is not None:
        yield "too many", given * (most + 1)
    if type(given) in (int, float):
        yield "too small", field.bounds.least - 1
        yield "too large", (most or 0) + 1
    if isinstance(given, str) and field.shapes == (Shape.TEXT,):
        if field.bounds.least:
            yield "empty text", ""
        if most is not None:
            yield "too long", "x" * (most + 1)


def _fits(shape: Shape, value: Any) -> bool:
    return {Shape.TEXT: str, Shape.WHOLE: int, Shape.BOOLEAN: bool}.get(shape) is type(value)


def _of_object(kind: ObjectKind, given: dict[str, Any]) -> Iterator[tuple[str, Callable[[dict[str, Any]], None]]]:
    yield "unknown attribute", _set("nonsense", 1)
    for name, present in given.items():
        field = kind.fields[name]
        if field.required or name in kind.exactly_one:
            yield f"no {name}", _without(name)
        for what, value in _of_field(field, present):
            yield f"{name}: {what}", _set(name, value)
    if kind.exactly_one:
        (other,) = set(kind.exactly_one) - given.keys()
        yield "both", _set(other, "$.a" if other in ("duration", "timestamp") else "acs:fnf:::flow/f")
    if kind.at_least_one:
        yield "none", _without(*kind.at_least_one)


def _mutations() -> Iterator[tuple[str, Place, Callable[[dict[str, Any]], None]]]:
    seen = set()
    for place in objects_of(FULL):
        for what, change in _of_object(place.kind, place.of(FULL)):
            key = (place.kind.title, what, "resourceArn" in place.of(FULL))
            if key not in seen:
                seen.add(key)
                yield f"{place.kind.title} at {place.keys}: {what}", place, change


def _with_that_step_alone(flow: dict[str, Any], place: Place) -> dict[str, Any]:
    """The flow without the steps that are right, for the sake of time."""
    return {**flow, "steps": [flow["steps"][place.keys[1]]]} if place.keys[:1] == ("steps",) else flow


def test_both_refuse_every_mutation() -> None:
    seen = 0
    for what, place, change in _mutations():
        mutated = copy.deepcopy(FULL)
        change(place.of(mutated))
        assert errors_of(json.dumps(mutated), LIMITS), f"the parser accepts {what}"
        assert not VALIDATOR.is_valid(_with_that_step_alone(mutated, place)), f"the schema accepts {what}"
        seen += 1
    assert seen > 250


def steps(*lines: str) -> str:
    return "version: v1\ntype: flow\nsteps:\n" + "".join(f"  - {line}\n" for line in lines)


OF_TARGETS = [
    "{TASK, resourceArn: 'acs:fc:::services/s/functions/f', serviceParams: {Nonsense: 1}}",
    "{TASK, resourceArn: 'acs:fc:::functions/f', serviceParams: {InvocationType: Later}}",
    "{TASK, resourceArn: !Ref s/f, serviceParams: {MessageBody: $}}",
    "{TASK, resourceArn: 'acs:fnf:::flow/f', serviceParams: {input: $}}",
    "{TASK, resourceArn: 'acs:mns:::/queues/q/messages'}",
    "{TASK, resourceArn: 'acs:mns:::/queues/q/messages', serviceParams: {Priority: 1}}",
    "{TASK, resourceArn: 'acs:mns:::/queues/q/messages', serviceParams: {MessageBody: $, Priority: 17}}",
    "{TASK, resourceArn: 'acs:mns:::/topics/a/messages', pattern: sync, serviceParams: {MessageBody: $}}",
    "{TASK, resourceArn: 'acs:mns:::/topics/t/messages', serviceParams: {MessageBody: $, Priority: 1}}",
    "{TASK, action: 'fnf:StartExecution', serviceParams: {Input: $}}",
    "{TASK, action: 'fnf:StartExecution', serviceParams: {FlowName: f}, pattern: sync}",
    "{TASK, action: 'ocr:Read', pattern: waitForCallback}",
    "{TASK, action: 'ocr.Read'}",
    "{TASK, resourceArn: 'acs:oss:::bucket/b'}",
    "{TASK, resourceArn: 'acs:mns:::/queues/q_1/messages', serviceParams: {MessageBody: $}}",
    "{type: tsk, name: t}",
    "{name: t}",
    "[type, pass]",
    "pass",
]
"""Steps that both refuse."""


@pytest.mark.parametrize("step", OF_TARGETS)
def test_both_refuse(step: str) -> None:
    text = steps(step.replace("TASK", "type: task, name: t"))
    assert errors_of(text, LIMITS)
    assert not VALIDATOR.is_valid(data_of(text))


# What the schema cannot express, as the page lists it.


PASS = "{type: pass, name: p}"
QUEUE = "{type: task, name: t, resourceArn: 'acs:mns:::/queues/q/messages', serviceParams: {MessageBody: %s}}"
TOPIC = "{type: task, name: t, resourceArn: 'acs:mns:::/topics/t/messages', serviceParams: {MessageBody: $, %s}}"

ONLY_PARSER = {
    "unknown-goto": [
        steps("{type: choice, name: c, choices: [{condition: $.a, goto: nowhere}], default: {}}"),
        steps("{type: task, name: t, resourceArn: 'acs:fc:::functions/f', catch: [{errors: [E], goto: nowhere}]}"),
    ],
    "duplicate-name": [steps(PASS, PASS)],
    "bad-condition": [steps("{type: choice, name: c, choices: [{condition: $.a = 1}], default: {}}")],
    "bad-path": [
        steps("{type: pass, name: p, outputMappings: [{target: t, source: $input..a}]}"),
        steps("{type: wait, name: w, duration: $..a}"),
    ],
    "misspelt-root": [steps("{type: pass, name: p, outputMappings: [{target: t, source: $inptu.a}]}")],
    "unsupported-action": [steps("{type: task, name: t, action: 'fnf:StopExecution'}")],
    "too-many-steps": [steps(*(f"{{type: pass, name: p{number}}}" for number in range(2001)))],
    "wrong-type": [steps("{type: wait, name: w, duration: 5.0}")],
    "bad-value": [
        steps(f"{{type: foreach, name: e, iterationMapping: {{collection: $, item: i, index: i}}, steps: [{PASS}]}}"),
        steps("{type: wait, name: w, timestamp: '2030-02-30T00:00:00Z'}"),
        steps(QUEUE % "''"),
        steps(TOPIC % "MessageTag: ''"),
        steps(TOPIC % "MessageAttributes: text"),
        steps("{type: task, name: t, resourceArn: 'acs:fnf:::flow/f', serviceParams: {Qualifier: 0}}"),
        steps(
            "{type: task, name: t, resourceArn: 'acs:fc:::functions/f', "
            "serviceParams: {StatefulAsyncInvocationID: 'a b'}}"
        ),
    ],
    "bad-resource": [steps("{type: task, name: t, resourceArn: s/f}")],
}
"""Definitions that the schema accepts and the parser refuses, for this reason alone."""

OF_YAML = {
    *("bad-alias", "bad-character", "bad-key", "bad-number", "definition-too-large", "duplicate-key", "many-documents"),
    *("merge-key", "nesting-too-deep", "no-definition", "not-yaml", "tag-not-allowed", "too-many-nodes"),
    "too-much-text",
}
"""Mistakes in YAML itself, before there is anything that a schema can be applied to."""

OF_SCHEMA = {
    *("bad-action", "bad-name", "bad-version", "empty-attribute", "empty-list", "exactly-one", "missing-attribute"),
    *("missing-parameter", "newer-dialect", "pattern-not-offered", "too-many-branches", "unknown-attribute"),
    *("unknown-parameter", "unknown-step-type"),
}
"""Mistakes that the schema always sees."""

OTHERS = {"checking-stopped", "unknown-resource", "unknown-step", "unusable-callee", "unusable-flow"}
"""No mistakes of definitions."""


@pytest.mark.parametrize(
    ("id", "text"), [(id, text) for id, texts in ONLY_PARSER.items() for text in texts], ids=lambda value: value[:60]
)
def test_only_the_parser_refuses(id: str, text: str) -> None:
    assert {*errors_of(text.replace("!Ref ", ""), LIMITS)} == {id}
    assert VALIDATOR.is_valid(data_of(text))


def listed(heading: str) -> list[str]:
    """The ids in the first column of the table below a heading of the page."""
    part = PAGE.read_text("utf-8").partition(f"### {heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\| `([a-z-]+)` \|", part, re.M)


def test_the_page_lists_what_only_the_parser_refuses() -> None:
    assert listed("Definitions") == list(ONLY_PARSER)


def test_every_error_is_one_of_these() -> None:
    errors = {id for id, meaning in DIAGNOSTICS.items() if not meaning.startswith("Warning: ")}
    assert errors == {*ONLY_PARSER} | OF_YAML | OF_SCHEMA | OTHERS


def test_the_schema_sees_no_mistake_of_yaml() -> None:
    assert data_of("a: 'x") is NO_DATA


def test_the_files_of_the_package_are_up_to_date() -> None:
    for file, text in schema_files():
        assert file.parent == FOLDER
        assert file.read_text("utf-8") == text, "run `make docs`"
