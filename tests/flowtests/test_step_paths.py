"""All that names steps by path names them alike: of parallel steps, foreach steps and choices within each other."""

import re
from pathlib import Path

import pytest

from flowserver.base.limits import Limits
from flowserver.base.step_paths import agree, folded
from flowserver.editing.files import Definition
from flowserver.expressions.conditions import compile_condition
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.properties import Always, Compensated
from flowserver.flowtests.records import Record
from flowserver.flowtests.simulating import SimulationSettings, simulate, simulate_file
from flowserver.flowtests.step_paths import StepsByPath, walk
from flowserver.language.graph import TaskStep
from flowserver.language.parser import parse
from flowserver.language.picture import picture_of
from flowserver.machine.event_paths import EventPaths
from flowserver.machine.messages import Success
from flowserver.machine.step_summary_fold import StepSummaries
from tests.support.world import World

TASK = "{type: task, name: %s, resourceArn: 'acs:fc:::services/s/functions/f'}"
FLOW = f"""version: v1
type: flow
steps:
- type: parallel
  name: Both
  branches:
  - steps: [{TASK % "A"}]
  - steps:
    - {TASK % "A"}
    - type: foreach
      name: Each
      iterationMapping: {{collection: $.items, item: item}}
      steps:
      - type: choice
        name: Kind
        choices: [{{condition: $.item == 1, steps: [{TASK % "One"}, {{type: pass, name: Same}}]}}]
        default: {{steps: [{TASK % "Other"}, {{type: pass, name: Same}}]}}
      - type: parallel
        name: Pair
        branches:
        - steps: [{TASK % "B"}]
        - steps: [{TASK % "B"}]
- type: foreach
  name: Outer
  iterationMapping: {{collection: $.items, item: item}}
  steps:
  - type: foreach
    name: Inner
    iterationMapping: {{collection: $.items, item: item}}
    steps: [{TASK % "C"}]
"""
LIMITS = Limits()
GRAPH = parse(FLOW, LIMITS).flow
PATHS = [path for path, _ in walk(GRAPH)]


@pytest.fixture(scope="module")
def world() -> World:
    """A run of the flow that has entered every step."""
    world = World(GRAPH, input={"items": [1, 2]})
    world.start()
    while world.execution.is_running:
        for call in list(world.calls):
            world.reply(Success({}), call)
    return world


def test_all_paths_of_a_definition_are_alike() -> None:
    outline = Definition(FLOW, LIMITS).outline
    assert [node.path for node in picture_of(GRAPH).nodes] == PATHS
    assert sorted(step.path for step in outline.steps()) == sorted(PATHS)
    assert PATHS[:4] == ["Both", "Both[0].A", "Both[1].A", "Both[1].Each"]


def test_all_paths_of_an_execution_are_of_its_definition(world: World) -> None:
    summaries, paths, steps = StepSummaries(), EventPaths(), StepsByPath(GRAPH)
    for event in world.events:
        summaries.add(event)
    entered = {path for event in world.events if (path := paths.add(event)) and not path.endswith("]")}
    assert {step.path for step in summaries.steps()} == set(PATHS)
    assert {steps.path_of(path) for path in entered} == set(PATHS)
    assert all(steps.find(path).name == re.split(r"\.", path)[-1] for path in entered)


def test_a_simulation_covers_all_that_it_calls() -> None:
    coverage = simulate(FLOW, settings=SimulationSettings(runs=40)).coverage
    assert coverage.not_called == []
    assert coverage.possible.keys() == {path for path, step in walk(GRAPH) if isinstance(step, TaskStep)}


def test_a_call_of_a_sub_flow_covers_no_step_of_its_parent(tmp_path: Path) -> None:
    head = "version: v1\ntype: flow\nsteps:\n"
    (tmp_path / "child.yaml").write_text(f"{head}- {TASK % 'Pay'}\n")
    start = "{type: task, name: Start, resourceArn: 'acs:fnf:::flow/child', pattern: sync, end: true}"
    (tmp_path / "parent.yaml").write_text(f"{head}- {start}\n- {TASK % 'Pay'}\n")
    tests = "flow: parent.yaml\nsteps: {Start: {real: child.yaml}}\nsim: {runs: 10}\n"
    file = Loader(LIMITS).load(tmp_path / "parent.flowtest.yaml", tests)
    coverage = simulate_file(file, Rules(LIMITS)).coverage
    assert coverage.not_called == ["Pay"]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ("A", 2),
        ("Both[0].A", 1),
        ("Both[].A", 2),
        ("Both[1].Each[].Pair[0].B", 2),
        ("Both[1].Each[1].Pair[].B", 2),
        ("Both[].Each[].Pair[].B", 4),
        ("Outer[1].Inner[].C", 2),
        ("Outer[].Inner[0].C", 2),
        ("Outer[].Inner[].C", 4),
    ],
)
def test_conditions_count_a_step_by_each_of_its_paths(run_tests, wanted: str, count: int) -> None:
    steps = FLOW.partition("steps:\n")[2]
    condition = f"""'$.calls["{wanted}"] == {count}'"""
    case = f"{{name: a, expect: {{calls: {{'{wanted}': {count}}}, always: [{condition}]}}}}"
    tests = f"functions: {{f: {{always: true}}}}\ninput: {{items: [1, 2]}}\ntests: [{case}]\n"
    (outcome,) = run_tests(steps, tests)
    assert [each.message for each in outcome.failures] == []


@pytest.mark.parametrize("wanted", ["Both[2].A", "Both[1].Each[].Pair[2].B", "Both[0].Each"])
def test_a_branch_that_is_not_there_is_an_unknown_step(mistakes, wanted: str) -> None:
    tests = f"functions: {{f: {{always: true}}}}\ntests: [{{name: a, expect: {{never: ['{wanted}']}}}}]\n"
    (mistake,) = mistakes(FLOW.partition("steps:\n")[2], tests)
    assert f"the flow has no step `{wanted}`; did you mean `" in mistake


def test_a_failure_in_a_branch_points_at_the_step_of_that_branch(run_tests) -> None:
    steps = FLOW.partition("steps:\n")[2]
    tests = "functions: {f: {always: true}}\ntests: [{name: a, input: {items: []}, steps: {'Both[1].A': {error: E}}}]\n"
    (outcome,) = run_tests(steps, tests)
    (failure,) = outcome.failures
    assert failure.definition.span.line == dict(walk(GRAPH))["Both[1].A"].span.line


def test_an_undo_step_in_another_branch_undoes_what_the_first_has_done() -> None:
    steps = f"""
- type: parallel
  name: Both
  branches:
  - steps: [{TASK % "Same"}]
  - steps: [{TASK % "Same"}, {{type: fail, name: End}}]
"""
    flow = parse(f"version: v1\ntype: flow\nsteps:{steps}", LIMITS).flow
    world = World(flow, input={})
    world.start()
    record = Record(flow, world.execution, entered=["Both", "Both[0].Same", "Both[1].Same"])
    record.done.update(["Both[0].Same", "Both[1].Same"])
    always = compile_condition("$.path == $.path")
    assert Compensated("Both[0].Same", "Both[1].Same", always).broken_by(record) is None
    assert Always(compile_condition('$.entered["Both[].Same"] == 2')).broken_by(record) is None


def test_paths_agree_where_numbers_are_the_same_or_left_open() -> None:
    assert agree("pack[17].label", "pack[].label")
    assert agree("ship[1].pack[].label", "ship[].pack[3].label")
    assert not agree("ship[0].book", "ship[1].book")
    assert not agree("ship[0]", "ship")
    assert folded(["pack[0].label", "pay", "pack[7].label"]) == ["pack[].label (×2)", "pay"]
