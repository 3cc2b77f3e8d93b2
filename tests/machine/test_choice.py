"""`choice`: the chosen option, its data, its output, and the next step."""

import pytest

from flowserver.base.json_values import load_json_object
from flowserver.machine.mappings import MissingSource
from flowserver.machine.state import Status
from tests.support.flows import flow
from tests.support.world import World, lines, trace


def _run(steps: str, missing_source: MissingSource = "null", **input: object) -> World:
    world = World(flow(steps), input=input, missing_source=missing_source)
    world.run()
    return world


def test_the_option_s_steps_appear_between_start_and_success() -> None:
    world = _run(
        """
        - type: choice
          name: c
          choices:
          - condition: $.n == 1
            steps:
            - {type: pass, name: p, outputMappings: [{target: a, source: $input.n}]}
        """,
        n=1,
    )
    assert trace(world.events) == lines("""
         1 0 - ExecutionStarted   {"input":{"n":1}}
         2 1 c StepEntered        {"input":{"n":1},"local":{}}
         3 2 c StepStarted        {"input":{"n":1},"option":0}
         4 3 p StepEntered        {"input":{"n":1},"local":{}}
         5 4 p StepStarted        {"input":{"n":1}}
         6 5 p StepSucceeded      {"output":{}}
         7 6 p StepExited         {"local":{"a":1}}
         8 7 c StepSucceeded      {"output":{"a":1}}
         9 8 c StepExited         {"local":{"a":1}}
        10 9 - ExecutionSucceeded {"output":{"a":1}}
    """)


@pytest.mark.parametrize(("n", "option"), [(5, 0), (7, 1), (0, "default")])
def test_the_start_of_a_choice_records_its_option(n: int, option: object) -> None:
    choices = "choices: [{condition: $.n == 5, goto: z}, {condition: $.n == 7, goto: z}], default: {goto: z}"
    world = _run(f"[{{type: choice, name: c, {choices}}}, {{type: pass, name: z}}]", n=n)
    assert load_json_object(world.events[2].detail) == {"input": {"n": n}, "option": option}


def test_no_option_is_recorded_as_null() -> None:
    world = _run("[{type: choice, name: c, choices: [{condition: $.n == 5, goto: z}]}, {type: pass, name: z}]", n=1)
    assert load_json_object(world.events[2].detail)["option"] is None


def test_the_first_condition_that_holds_wins() -> None:
    world = _run(
        """
        - type: choice
          name: c
          choices:
          - {condition: $.n > 5, goto: big}
          - {condition: $.n > 1, goto: middle}
          - {condition: $.n > 0, goto: small}
        - {type: fail, name: none}
        - {type: succeed, name: small}
        - {type: succeed, name: middle}
        - {type: succeed, name: big}
        """,
        n=3,
    )
    assert world.entered == ["c", "middle"]


@pytest.mark.parametrize("option", ["choices: [{condition: 'true'}]", "default: {}"])
def test_an_empty_option_falls_through(option: str) -> None:
    world = _run(f"- {{type: choice, name: c, {option}}}\n- {{type: pass, name: p}}")
    assert (world.entered, world.execution.output) == (["c", "p"], {})


def test_output_mappings_see_the_option_s_local_and_the_choice_s_input() -> None:
    world = _run(
        """
        - type: choice
          name: c
          default:
            steps:
            - {type: pass, name: p, outputMappings: [{target: a, source: 1}, {target: b, source: 2}]}
          outputMappings: [{target: x, source: $local.a}, {target: y, source: $input.n}]
        """,
        n=7,
    )
    assert world.execution.output == {"x": 1, "y": 7}


def test_a_goto_wins_over_the_choice_s_own_end() -> None:
    world = _run("""
        - {type: choice, name: c, end: true, default: {goto: z}}
        - {type: fail, name: y}
        - {type: pass, name: z}
    """)
    assert world.entered == ["c", "z"]


def test_without_a_goto_end_ends_the_list() -> None:
    world = _run("- {type: choice, name: c, end: true, default: {}}\n- {type: fail, name: never}")
    assert (world.entered, world.execution.status) == (["c"], Status.SUCCEEDED)


@pytest.mark.parametrize("ending", ["{type: succeed, name: s}", "{type: pass, name: s, end: true}"])
def test_an_option_s_list_that_ends_early_completes_the_choice_whose_goto_is_taken(ending: str) -> None:
    world = _run(f"""
        - type: choice
          name: c
          default:
            steps:
            - {ending}
            - {{type: fail, name: never}}
            goto: z
        - {{type: fail, name: y}}
        - {{type: pass, name: z}}
    """)
    assert world.entered == ["c", "s", "z"]


def test_a_backward_goto_enters_its_target_again() -> None:
    world = _run(
        """
        - type: pass
          name: count
          inputMappings: [{target: seen, source: $local.seen}]
          outputMappings: [{target: before, source: $input.seen}, {target: seen, source: true}]
        - type: choice
          name: c
          choices: [{condition: $.before != true, goto: count}]
        """,
    )
    assert (world.entered, world.execution.output) == (["count", "c", "count", "c"], {"before": True, "seen": True})


def test_choices_nest_and_each_list_starts_with_an_empty_local() -> None:
    world = _run("""
        - {type: pass, name: a, outputMappings: [{target: x, source: 1}]}
        - type: choice
          name: outer
          default:
            steps:
            - {type: pass, name: b, outputMappings: [{target: y, source: 2}]}
            - type: choice
              name: inner
              default:
                steps:
                - type: pass
                  name: c
                  outputMappings: [{target: z, source: $input.x}, {target: up, source: $input.y}]
                - type: pass
                  name: d
                  inputMappings: [{target: local, source: $local}, {target: input, source: $input}]
                  outputMappings: [{target: d, source: $input}]
    """)
    output = {"z": 1, "up": 2, "d": {"local": {"z": 1, "up": 2}, "input": {"x": 1, "y": 2}}}
    assert world.execution.output == {"x": 1, "y": 2, **output}


def test_a_failure_in_a_nested_option_closes_every_choice_around_it() -> None:
    world = _run("""
        - type: choice
          name: outer
          default:
            steps:
            - type: choice
              name: inner
              default:
                steps:
                - {type: fail, name: f, error: E}
    """)
    assert trace(world.events)[7:] == lines("""
         8 7  f     StepFailed      {"error":"E","cause":""}
         9 8  f     StepExited      {"local":{}}
        10 9  inner StepFailed      {"error":"E","cause":""}
        11 10 inner StepExited      {"local":{}}
        12 11 outer StepFailed      {"error":"E","cause":""}
        13 12 outer StepExited      {"local":{}}
        14 13 -     ExecutionFailed {"error":"E","cause":""}
    """)


def test_a_choice_whose_output_cannot_be_mapped_fails() -> None:
    steps = "- {type: choice, name: c, default: {}, outputMappings: [{target: a, source: $local.b}]}"
    assert _run(steps, missing_source="fail").execution.error == "FnF.RuntimeError"
