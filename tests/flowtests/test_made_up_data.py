"""The data of simulations is made up from what flows read, so that runs take every way."""

from random import Random

import pytest

from flowserver.base.limits import Limits
from flowserver.flowtests.choices import Choices
from flowserver.flowtests.simulating.made_up_data import VALUES_MAX, MadeUpData
from flowserver.flowtests.step_paths import tasks_of
from flowserver.language.parser import parse


def data_of(steps: str, *, head: str = "") -> MadeUpData:
    return MadeUpData(parse(f"version: v1\ntype: flow\n{head}\nsteps:\n{steps}", Limits()).flow)


def inputs(steps: str, runs: int = 50, sizes: tuple[int, ...] = (2,), head: str = "") -> list[dict]:
    data = data_of(steps, head=head)
    return [data.input(Choices()), *(data.input(Choices(Random(run), sizes)) for run in range(runs))]


def result_of(steps: str, name: str, random: Random | None = None) -> dict:
    flow = parse(f"version: v1\ntype: flow\nsteps:\n{steps}", Limits()).flow
    step = next(task for task in tasks_of(flow) if task.name == name)
    return MadeUpData(flow).result(step, Choices(random))


def choice(condition: str) -> str:
    return f"  - {{type: choice, name: c, choices: [{{condition: '{condition}', steps: [{{type: pass, name: p}}]}}]}}\n"


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ('$.a == "x" || $.a == "y"', {"x", "y", "other"}),
        ("$.a != 3", {3, 4}),
        ("$.a < 3", {2, 3, 4}),
        ("$.a == -1", {-1, 0}),
        ("-$.a > 2", {"a-1", "a-2"}),
        ("$.a == 1.5", {1.5, 2.5}),
        ("$.a == true", {True, False}),
        ("$.a", {True, False}),
        ("!$.a && $.b", {True, False}),
        ('$.a == $.b && $.b == "x"', {"x", "other"}),
    ],
)
def test_values_are_those_that_conditions_compare_with(condition, values):
    assert {each["a"] for each in inputs(choice(condition))} == values


def test_lists_have_what_conditions_look_for():
    found = inputs(choice('"x" in $.a'))
    assert {value for each in found for value in each["a"]} == {"x", "other"}


FOREACH = """
  - type: foreach
    name: Each
    iterationMapping: {collection: $.orders, item: order}
    steps:
      - {type: pass, name: p, inputMappings: [{target: id, source: '$input.order.ids[1]'}]}
      - {type: wait, name: w, duration: $.order.pause}
"""


def test_lists_have_elements_with_what_is_read_of_them():
    plain, *drawn = inputs(FOREACH, sizes=(0, 1, 3))
    assert plain == {"orders": [{"ids": ["ids-1", "ids-1"], "pause": 1}] * 2}
    assert {len(each["orders"]) for each in drawn} == {0, 1, 3}
    assert {len(order["ids"]) for each in drawn for order in each["orders"]} == {2}
    assert all(isinstance(order["pause"], int) for each in drawn for order in each["orders"])


def test_names_that_mappings_copy_have_one_kind():
    steps = """
  - {type: pass, name: p, outputMappings: [{target: wanted, source: $input.given}]}
  - {type: choice, name: c, choices: [{condition: '$.wanted == "x"', goto: q}]}
  - {type: pass, name: q}
"""
    assert {each["given"] for each in inputs(steps)} == {"x", "other"}


def test_the_mappings_of_the_flow_say_what_its_input_has():
    head = "inputMappings: [{target: id, source: $input.payload.id}, {target: all, source: $input}]"
    assert inputs(choice("$.id > 1"), head=head)[0] == {"payload": {"id": 0}}


def test_whole_objects_have_the_keys_that_are_read_of_them():
    steps = """
  - type: task
    name: Get
    resourceArn: acs:fc:::functions/get
    outputMappings: [{target: order, source: $local}]
  - type: foreach
    name: Each
    iterationMapping: {collection: '$.order.items', item: each}
    steps: [{type: pass, name: p}]
"""
    assert result_of(steps, "Get") == {"items": ["items-1", "items-1"]}


TASKS = """
  - {type: task, name: One, resourceArn: 'acs:fc:::functions/one', outputMappings: [{target: id, source: $local.key}]}
  - {type: task, name: Two, resourceArn: 'acs:fc:::functions/two'}
  - {type: task, name: Three, resourceArn: 'acs:fc:::functions/three', inputMappings: [{target: a, source: $local.id}]}
  - {type: wait, name: Until, timestamp: $.when}
"""


def test_results_have_what_is_read_of_them():
    assert result_of(TASKS, "One") == {"key": "key-1"}
    assert result_of(TASKS, "Two") == {"when": "2026-01-01T00:00:01.000Z"}
    drawn = [set(result_of(TASKS, "Two", Random(seed))) for seed in range(20)]
    assert {"when"} in drawn
    assert {"when", "id"} in drawn  # which is One's, perhaps


def test_results_in_options_and_loops_have_what_is_read_behind_these():
    steps = """
  - type: choice
    name: c
    default: {steps: [{type: task, name: Inner, resourceArn: 'acs:fc:::functions/inner'}]}
  - {type: pass, name: p, inputMappings: [{target: x, source: $local.fromOption}]}
  - type: foreach
    name: f
    iterationMapping: {collection: $.list, item: it}
    steps: [{type: task, name: Body, resourceArn: 'acs:fc:::functions/body'}]
    outputMappings: [{target: all, source: '$local[*].fromBody'}]
"""
    assert "fromOption" in result_of(steps, "Inner")
    assert result_of(steps, "Body") == {"fromBody": "fromBody-1"}


def test_documents_are_bounded():
    inner = "  - {type: pass, name: p, inputMappings: [{target: x, source: $input.a.a.a.a.a.a.a.a.a.a}]}\n"
    loops = "\n".join(
        f"  - {{type: foreach, name: f{n}, iterationMapping: {{collection: '$.a[*].l{n}', item: l{n + 1}}}, "
        f"steps: [{{type: pass, name: q{n}}}]}}"
        for n in range(6)
    )
    for given in inputs(inner + loops, runs=3, sizes=(1_000,)):
        assert str(given).count(",") < 20 * VALUES_MAX
