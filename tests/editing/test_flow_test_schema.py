"""The JSON Schema of flow test files against their reader, both ways."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from flowserver.base.limits import Limits
from flowserver.editing.flow_test_schema import flow_test_schema
from flowserver.flowtests.cases import Source
from flowserver.flowtests.fields import KINDS, TABLES
from flowserver.flowtests.loading import schema_of
from flowserver.flowtests.reading import read_test_file
from flowserver.flowtests.real_calls import unopened
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.parser import parse
from tests.docs.pages import ROOT, blocks, pages
from tests.editing.schema_cases import data_of
from tests.editing.test_flow_schema import listed
from tests.flowtests.test_mistakes import MISTAKES
from tests.language.test_properties import UNTIMED, VALUES

LIMITS = Limits()
VALIDATOR = Draft7Validator(flow_test_schema(LIMITS))
FLOW = """\
version: v1
type: flow
steps:
  - {type: task, name: Charge, resourceArn: 'acs:fc:::services/pay/functions/charge'}
  - {type: task, name: Child, resourceArn: 'acs:fnf:::flow/child', pattern: sync}
  - {type: task, name: Send, resourceArn: 'acs:mns:::/queues/q/messages', serviceParams: {MessageBody: $}}
  - {type: task, name: Tell, resourceArn: 'acs:mns:::/topics/t/messages', serviceParams: {MessageBody: $}}
  - type: task
    name: Ask
    resourceArn: acs:fc:::functions/ask
    pattern: waitForCallback
    inputMappings: [{target: taskToken, source: $context.task.token}]
"""
SOURCE = Source(Path("flow.yaml"), FLOW, parse(FLOW, LIMITS).flow)

MOCKS: dict[str, Any] = {
    "functions": {"charge": [{"error": "E", "cause": "c", "times": 2}, {"return": 3, "always": True}]},
    "flows": {"child": {"real": "flow.yaml"}},
    "queues": {"q": {"after": "1h30m"}},
    "topics": {"t": {"real": "HTTPS://a/b", "after": "1s"}},
    "steps": {"Ask": {"real": "folder/h.py:f"}, "Child": {"real": "flow.yaml"}, "Tell": [{"never": True}]},
    "callbacks": {"Ask": [{"succeed": {}, "times": 1}, {"fail": "E", "cause": ""}]},
}
FULL: dict[str, Any] = {
    "flow": "flow.yaml",
    "name": "order",
    "input": {"a": 1},
    "startedAt": "2026-01-02T03:04:05Z",
    **MOCKS,
    "tests": [
        {
            "name": "one",
            "input": {},
            "executionName": "e",
            "startedAt": "2026-01-02T03:04:05+01:00",
            **MOCKS,
            "expect": {
                "status": "Succeeded",
                "output": {},
                "path": ["Charge"],
                "never": ["Ask"],
                "cause": "c",
                "took": "< 3d",
                "calls": {
                    "Charge": 2,
                    "Child": [{}],
                    "Send": {"count": 1, "inputs": [{}]},
                    "Tell": {"inputsInclude": []},
                },
            },
        },
        {
            "name": "two",
            "expect": {"outputIncludes": {}, "pathIncludes": ["Charge"], "causeIncludes": "c", "took": ["> 1s", "3d"]},
        },
        {"name": "three", "expect": {"error": "E"}},
        {
            "name": "four",
            "steps": {"Charge": [{"crash": "after"}, {"return": {}}]},
            "callbacks": {"Ask": {"succeed": {}, "again": "1s"}},
            "expect": {
                "status": "Any",
                "atMostOnce": ["Charge", "charge"],
                "outputSchema": {"type": "object"},
                "compensated": {"Charge": "Send", "Child": {"by": "Send", "when": "$.calls.Tell > 0"}},
                "always": ["$.calls.Charge <= 2", {"if": '$.status == "Failed"', "then": "$.calls.Send == 1"}],
            },
        },
    ],
    "sim": {
        "runs": 5,
        "seed": 0,
        "faults": ["5xx", "crash-at-commit"],
        "collections": [0, 100],
        "ignore": ["undone"],
        "inputSchema": {"properties": {"a": {"enum": [1, 2]}}},
        "outputSchema": {"type": "object"},
        "never": ["Tell"],
        "atMostOnce": ["Charge"],
        "compensated": {"Charge": "Send"},
        "always": ["$.calls.Charge <= 2"],
    },
}
"""A file with every attribute."""


class OneDefinition:
    """The same definition in every file."""

    def of_flow(self, file: Path) -> Source:
        return SOURCE

    def of_sub_flow(self, file: Path) -> Source:
        return SOURCE

    of_callee = staticmethod(unopened)
    of_schema = staticmethod(schema_of)


def errors_of(text: str) -> list[str]:
    """The ids of the mistakes in a file."""
    try:
        read_test_file(Path("order.flowtest.yaml"), text, LIMITS, OneDefinition())
    except DefinitionRejected as rejected:
        return [found.id for found in rejected.diagnostics]
    return []


def check(text: str) -> bool:
    """Whether the reader accepts a text; the schema must then accept it, too."""
    accepted = not errors_of(text)
    if accepted:
        assert [error.message for error in VALIDATOR.iter_errors(data_of(text))] == []
    return accepted


def test_it_is_a_schema_of_draft_7() -> None:
    Draft7Validator.check_schema(VALIDATOR.schema)


def test_it_has_every_attribute() -> None:
    schemas = [VALIDATOR.schema, *VALIDATOR.schema["definitions"].values()]
    by_title = {schema["title"]: [*schema["properties"]] for schema in schemas if "title" in schema}
    assert by_title == {kind.title: [*kind.fields] for kind in KINDS}


def test_a_file_with_every_attribute() -> None:
    assert check(json.dumps(FULL))


def test_examples_and_pages() -> None:
    texts = [file.read_text("utf-8") for file in sorted((ROOT / "examples").rglob("*.flowtest.yaml"))]
    texts += [block.text for page in pages() for block in blocks(page) if "flowtest.yaml" in (block.mark("file") or "")]
    assert len(texts) >= 5
    for text in texts:
        assert [error.message for error in VALIDATOR.iter_errors(data_of(text))] == []


VALUE = st.one_of(
    VALUES,
    st.sampled_from([{"real": "a.yaml"}, {"real": "a.py:f", "after": "1s"}, {"error": "E"}]),
    st.sampled_from([{"succeed": {}}, "1s", [{"times": 1}], {"never": True}]),
)
NEAR = st.dictionaries(st.sampled_from(sorted({name for kind in KINDS for name in kind.fields})), VALUE, max_size=4)
NEAR_TESTS = st.builds(
    lambda near, tables, expect: {
        "flow": "flow.yaml",
        **near,
        "tests": [{"name": "one", **tables, "expect": expect}],
    },
    NEAR,
    st.dictionaries(
        st.sampled_from(sorted(TABLES)),
        st.dictionaries(
            st.sampled_from(["Charge", "charge", "Ask", "child", "q", "t"]), st.one_of(NEAR, VALUE), max_size=2
        ),
        max_size=2,
    ),
    NEAR,
)


@UNTIMED
@given(NEAR_TESTS)
def test_the_reader_refuses_what_the_schema_refuses(data: Any) -> None:
    check(json.dumps(data))


WRONG = [
    "tests: [{name: a}]",
    "flow: f",
    "flow: f\ntests: []",
    "flow: f\ntests: [{}]",
    "flow: f\ntests: [{name: ''}]",
    "flow: 1\ntests: [{name: a}]",
    "flow: f\ntests: [{name: a, nonsense: 1}]",
    "flow: f\ntests: [{name: a}]\nstartedAt: today",
    "flow: f\ntests: [{name: a}]\ninput: []",
    "flow: f\ntests: [{name: a, expect: {status: Running}}]",
    "flow: f\ntests: [{name: a, expect: {took: soon}}]",
    "flow: f\ntests: [{name: a, expect: {took: [1]}}]",
    "flow: f\ntests: [{name: a, expect: {path: [1]}}]",
    "flow: f\ntests: [{name: a, expect: {path: [Charge], pathIncludes: [Charge]}}]",
    "flow: f\ntests: [{name: a, expect: {calls: {Charge: -1}}}]",
    "flow: f\ntests: [{name: a, expect: {calls: {Charge: {inputs: [], inputsInclude: []}}}}]",
    "flow: f\ntests: [{name: a, expect: {calls: {Charge: many}}}]",
    "flow: f\ntests: [{name: a, functions: {charge: []}}]",
    "flow: f\ntests: [{name: a, functions: {charge: {retrun: 1}}}]",
    "flow: f\ntests: [{name: a, functions: {charge: {real: f}}}]",
    "flow: f\ntests: [{name: a, functions: {charge: {real: 'f.py:g', return: 1}}}]",
    "flow: f\ntests: [{name: a, steps: {Child: {real: f.yaml, after: 1s}}}]",
    "flow: f\ntests: [{name: a, callbacks: {Ask: {real: f.yaml}}}]",
    "flow: f\ntests: [{name: a, functions: {charge: {times: 0}}}]",
    "flow: f\ntests: [{name: a, functions: {charge: {after: 3}}}]",
    "flow: f\ntests: [{name: a, functions: {charge: {after: soon}}}]",
    "flow: f\ntests: [{name: a, flows: {child: {real: f, times: 1}}}]",
    "flow: f\ntests: [{name: a, callbacks: {Ask: {return: 1}}}]",
]


@pytest.mark.parametrize("text", WRONG)
def test_both_refuse(text: str) -> None:
    assert errors_of(text)
    assert not VALIDATOR.is_valid(data_of(text))


def one(mocks: str) -> str:
    return f"flow: f\ntests: [{{name: a, {mocks}}}]"


ONLY_READER = {
    "unknown-step": [one("expect: {never: [Ship]}"), one("steps: {Ship: {}}")],
    "unknown-resource": [one("functions: {ship: {}}")],
    "unusable-callee": [],  # with files: tests/cli/test_real_calls.py
    "unusable-flow": [],  # with files: tests/flowtests/test_mistakes.py
    "duplicate-name": ["flow: f\ntests: [{name: a}, {name: a}]"],
    "exactly-one": [
        one("steps: {Charge: {return: 1, error: E}}"),
        one("steps: {Charge: {return: 1, never: true}}"),
        one("callbacks: {Ask: {times: 1}}"),
        one("steps: {Charge: {times: 1, always: true}}"),
        one("steps: {Charge: {after: 1s, never: true}}"),
        one("expect: {error: E, output: {}}"),
    ],
    "missing-attribute": [one("steps: {Charge: {cause: c}}"), one("callbacks: {Ask: {succeed: {}, cause: c}}")],
    "bad-value": [
        one("steps: {Charge: [{always: true}, {error: E}]}"),
        one("startedAt: '2026-02-30T00:00:00Z'"),
        one("steps: {Charge: {after: 400d}}"),
    ],
}


@pytest.mark.parametrize(("id", "text"), [(id, text) for id, texts in ONLY_READER.items() for text in texts])
def test_only_the_reader_refuses(id: str, text: str) -> None:
    assert {*errors_of(text)} == {id}
    assert VALIDATOR.is_valid(data_of(text))


def test_the_page_lists_what_only_the_reader_refuses() -> None:
    assert listed("Flow tests") == list(ONLY_READER)


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_that_the_schema_sees_are_mistakes(text: str) -> None:
    check(f"flow: f\n{text}")
