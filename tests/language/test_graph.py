"""The graphs of valid definitions."""

from typing import Any

import pytest

from flowserver.expressions.conditions import compile_condition
from flowserver.expressions.paths import compile_path
from flowserver.expressions.references import compile_source
from flowserver.language.graph import (
    CatchRule,
    ChoiceStep,
    FailStep,
    Flow,
    ForeachStep,
    Mapping,
    Option,
    ParallelStep,
    ParamPath,
    PassStep,
    Pattern,
    RetryPolicy,
    Span,
    StepList,
    SucceedStep,
    TaskStep,
    WaitStep,
)
from tests.language.definitions import HEADER, flow_of, step_of


def names(steps: StepList | None) -> list[str]:
    return [step.name for step in steps.steps] if steps else []


def test_flow_attributes() -> None:
    flow = flow_of(
        """
        version: v1beta1
        type: flow
        name: whatever 2
        timeoutSeconds: 31536000
        inputMappings: [{target: a, source: $input.b}]
        outputMappings: [{target: c, source: $local}]
        steps:
        - {type: pass, name: only}
        """
    )
    assert (flow.version, flow.name, flow.timeout_seconds) == ("v1beta1", "whatever 2", 31_536_000)
    assert flow.input_mappings == (Mapping("a", compile_source("$input.b")),)
    assert flow.output_mappings == (Mapping("c", compile_source("$local")),)
    assert flow.lists == (flow.root,)


def test_flow_defaults() -> None:
    flow = flow_of("{version: v1, type: flow, steps: [{type: pass, name: only}]}")
    step = PassStep(name="only", span=Span(1, 35, 1, 59))
    assert flow == Flow(version="v1", lists=(StepList(0, (step,), {"only": 0}),))


def test_mappings_are_absent_or_empty_or_full() -> None:
    absent = step_of("- {type: pass, name: a}")
    empty = step_of("- {type: pass, name: a, inputMappings: [], outputMappings: []}")
    full = step_of("- {type: pass, name: a, inputMappings: [{source: [1, {k: $local}], target: t.$x}]}")
    assert (absent.input_mappings, absent.output_mappings) == (None, None)
    assert (empty.input_mappings, empty.output_mappings) == ((), ())
    assert full.input_mappings == (Mapping("t.$x", compile_source([1, {"k": "$local"}])),)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("$input.a", "$input.a"),
        ("yes", "yes"),
        ("2030-01-01", "2030-01-01"),
        ("'1'", "1"),
        ("null", None),
        ("", None),
        ("0o17", 15),
        ("[]", []),
        ("{1: a, true: b, ~: c, 0x1: d}", {"1": "a", "true": "b", "~": "c", "0x1": "d"}),
        ("{a: {b: [~, -1.5, False]}}", {"a": {"b": [None, -1.5, False]}}),
    ],
)
def test_sources(written: str, value: Any) -> None:
    step = step_of(f"- type: pass\n  name: a\n  outputMappings:\n  - target: t\n    source: {written}\n")
    assert step.output_mappings == (Mapping("t", compile_source(value)),)


def test_end() -> None:
    flow = flow_of(HEADER + "- {type: pass, name: a, end: false}\n- {type: pass, name: b, end: true}\n")
    assert [step.end for step in flow.root.steps] == [False, True]


def test_succeed_and_fail() -> None:
    assert isinstance(step_of("- {type: succeed, name: a}"), SucceedStep)
    bare = step_of("- {type: fail, name: a}")
    full = step_of("- {type: fail, name: a, error: Nope, cause: because}")
    assert isinstance(bare, FailStep)
    assert isinstance(full, FailStep)
    assert (bare.error, bare.cause) == ("FnF.Failed", "")
    assert (full.error, full.cause) == ("Nope", "because")


@pytest.mark.parametrize(
    ("written", "duration", "timestamp"),
    [
        ("duration: 0", 0, None),
        ("duration: 172800", 172_800, None),
        ("duration: $.n", compile_path("$.n"), None),
        ("timestamp: 2030-01-01T00:00:00Z", None, 1_893_456_000_000),
        ("timestamp: '2030-01-01T01:00:00.250+01:00'", None, 1_893_456_000_250),
        ("timestamp: 2030-01-01t00:00:00z", None, 1_893_456_000_000),
        ("timestamp: '2030-01-01t01:00:00.250+01:00'", None, 1_893_456_000_250),
        ("timestamp: $.at[0]", None, compile_path("$.at[0]")),
    ],
)
def test_wait(written: str, duration: object, timestamp: object) -> None:
    step = step_of(f"- type: wait\n  name: a\n  {written}\n")
    assert isinstance(step, WaitStep)
    assert (step.duration, step.timestamp) == (duration, timestamp)


def test_choice() -> None:
    flow = flow_of(
        HEADER
        + """
- type: choice
  name: c
  default: {steps: [{type: pass, name: d}], goto: c}
  choices:
  - {condition: $.a == 1, steps: [{type: pass, name: a}], goto: z}
  - {condition: true, steps: []}
- {type: pass, name: z}
"""
    )
    step = flow.root.steps[0]
    assert isinstance(step, ChoiceStep)
    first, second = step.options
    assert (first.condition, names(first.steps), first.goto) == (compile_condition("$.a == 1"), ["a"], "z")
    assert second == Option(compile_condition("true"), None, None)
    assert step.default is not None
    assert (step.default.condition, names(step.default.steps), step.default.goto) == (None, ["d"], "c")


def test_choice_with_a_default_only() -> None:
    step = step_of("- {type: choice, name: c, default: {}}")
    assert isinstance(step, ChoiceStep)
    assert (step.options, step.default) == ((), Option(None, None, None))


def test_parallel_and_foreach() -> None:
    flow = flow_of(
        HEADER
        + """
- type: parallel
  name: p
  branches:
  - steps:
    - type: foreach
      name: f
      iterationMapping: {collection: $.ids, item: id, index: i}
      steps: [{type: pass, name: x}, {type: pass, name: y}]
  - steps: [{type: pass, name: b}]
"""
    )
    parallel = flow.root.steps[0]
    assert isinstance(parallel, ParallelStep)
    assert [names(branch) for branch in parallel.branches] == [["f"], ["b"]]
    foreach = parallel.branches[0].steps[0]
    assert isinstance(foreach, ForeachStep)
    assert (foreach.collection, foreach.item, foreach.index) == (compile_path("$.ids"), "id", "i")
    assert foreach.steps.position == {"x": 0, "y": 1}


def test_lists_are_numbered_in_the_order_in_which_they_begin() -> None:
    flow = flow_of(
        HEADER
        + """
- type: choice
  name: c
  choices:
  - condition: $.a
    steps:
    - type: parallel
      name: p
      branches: [{steps: [{type: pass, name: a}]}, {steps: [{type: pass, name: b}]}]
  default: {steps: [{type: pass, name: d}]}
- type: foreach
  name: f
  iterationMapping: {collection: $, item: i}
  steps: [{type: pass, name: e}]
"""
    )
    assert [names(steps) for steps in flow.lists] == [["c", "f"], ["p"], ["a"], ["b"], ["d"], ["e"]]
    assert [steps.list_id for steps in flow.lists] == [0, 1, 2, 3, 4, 5]


def test_an_alias_gives_each_place_its_own_list() -> None:
    flow = flow_of(HEADER + "- {type: parallel, name: p, branches: [&b {steps: [{type: pass, name: a}]}, *b]}\n")
    assert [names(steps) for steps in flow.lists] == [["p"], ["a"], ["a"]]


def test_task_defaults() -> None:
    step = step_of("- {type: task, name: t, resourceArn: 'acs:fc:::functions/f'}")
    assert isinstance(step, TaskStep)
    assert (step.pattern, step.service_params, step.timeout_seconds) == (Pattern.REQUEST_RESPONSE, None, None)
    assert (step.retry, step.catch, step.error_mappings) == ((), (), None)


def test_task_error_treatment() -> None:
    step = step_of(
        """
- type: task
  name: t
  resourceArn: acs:fc:::functions/f
  timeoutSeconds: 5
  errorMappings: [{target: e, source: $local.error}]
  retry:
  - errors: [FnF.ALL]
  - {errors: [A, B, A], intervalSeconds: 3, maxIntervalSeconds: 9, maxAttempts: 0, multiplier: 1.5}
  catch:
  - {errors: [A], goto: t}
"""
    )
    assert isinstance(step, TaskStep)
    assert step.timeout_seconds == 5
    assert step.error_mappings == (Mapping("e", compile_source("$local.error")),)
    first, second = step.retry
    assert first == RetryPolicy(frozenset({"FnF.ALL"}), 1, 86_400, 3, 2.0)
    assert second == RetryPolicy(frozenset({"A", "B"}), 3, 9, 0, 1.5)
    assert step.catch == (CatchRule(frozenset({"A"}), "t"),)


@pytest.mark.parametrize("pattern", Pattern)
def test_task_patterns(pattern: Pattern) -> None:
    step = step_of(f"- {{type: task, name: t, resourceArn: 'acs:fnf:::flow/child', pattern: {pattern}}}")
    assert isinstance(step, TaskStep)
    assert step.pattern is pattern


def test_task_parameters() -> None:
    step = step_of(
        """
- type: task
  name: t
  action: ocr:Read
  serviceParams:
    FlowName: child
    Input: $
    Deep: [{a: $.b, c: "$[0]"}, 1, true, null, $5]
    Quoted: "$.q"
"""
    )
    assert isinstance(step, TaskStep)
    assert step.service_params == {
        "FlowName": "child",
        "Input": ParamPath(compile_path("$")),
        "Deep": [{"a": ParamPath(compile_path("$.b")), "c": ParamPath(compile_path("$[0]"))}, 1, True, None, "$5"],
        "Quoted": ParamPath(compile_path("$.q")),
    }


def test_a_step_knows_its_position() -> None:
    flow = flow_of(HEADER + "- type: pass\n  name: a\n\n# between\n- {type: pass,\n   name: b}\n")
    assert [step.span for step in flow.root.steps] == [Span(4, 3, 5, 10), Span(8, 3, 9, 12)]
