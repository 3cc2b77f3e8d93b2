"""`pass`, `succeed` and `fail`; mapping and merging of documents; ends of lists."""

import pytest

from flowserver.base.json_values import JsonObject
from flowserver.machine.events import EventType
from flowserver.machine.mappings import MissingSource
from flowserver.machine.state import Status
from tests.support.flows import flow
from tests.support.world import World, lines, trace


def _run(steps: str, attributes: str = "", missing_source: MissingSource = "null", **input: object) -> World:
    world = World(flow(steps, attributes), input=input, missing_source=missing_source)
    world.run()
    return world


def test_the_documented_history_of_two_pass_steps() -> None:
    world = _run("""
        - {type: pass, name: pass1}
        - {type: pass, name: pass2}
    """)
    assert trace(world.events) == lines("""
         1 0 -     ExecutionStarted   {"input":{}}
         2 1 pass1 StepEntered        {"input":{},"local":{}}
         3 2 pass1 StepStarted        {"input":{}}
         4 3 pass1 StepSucceeded      {"output":{}}
         5 4 pass1 StepExited         {"local":{}}
         6 5 pass2 StepEntered        {"input":{},"local":{}}
         7 6 pass2 StepStarted        {"input":{}}
         8 7 pass2 StepSucceeded      {"output":{}}
         9 8 pass2 StepExited         {"local":{}}
        10 9 -     ExecutionSucceeded {"output":{}}
    """)


def test_details_show_the_parent_before_the_mapped_input_the_step_s_own_local_and_the_parent_after() -> None:
    world = _run(
        """
        - type: pass
          name: first
          outputMappings: [{target: a, source: 1}]
        - type: pass
          name: second
          inputMappings: [{target: x, source: $local.a}, {target: y, source: $input.who}]
          outputMappings: [{target: b, source: $input.x}]
        """,
        who="ann",
    )
    assert trace(world.events)[5:9] == lines("""
        6 5 second StepEntered   {"input":{"who":"ann"},"local":{"a":1}}
        7 6 second StepStarted   {"input":{"x":1,"y":"ann"}}
        8 7 second StepSucceeded {"output":{}}
        9 8 second StepExited    {"local":{"a":1,"b":1}}
    """)


def test_succeed_maps_its_output_and_ends_its_list() -> None:
    world = _run("""
        - type: succeed
          name: done
          outputMappings: [{target: a, source: 1}]
        - {type: pass, name: never}
    """)
    assert (world.entered, world.execution.output) == (["done"], {"a": 1})
    assert trace(world.events)[3:] == lines("""
        4 3 done StepSucceeded      {"output":{}}
        5 4 done StepExited         {"local":{"a":1}}
        6 5 -    ExecutionSucceeded {"output":{"a":1}}
    """)


def test_fail_closes_its_step_and_ends_the_execution() -> None:
    world = _run("""
        - {type: fail, name: stop, error: Nope, cause: because}
        - {type: pass, name: never}
    """)
    assert trace(world.events)[2:] == lines("""
        3 2 stop StepStarted     {"input":{}}
        4 3 stop StepFailed      {"error":"Nope","cause":"because"}
        5 4 stop StepExited      {"local":{}}
        6 5 -    ExecutionFailed {"error":"Nope","cause":"because"}
    """)
    assert (world.execution.status, world.execution.output) == (Status.FAILED, None)


def test_a_bare_fail_has_a_default_error_name() -> None:
    execution = _run("- {type: fail, name: f}").execution
    assert (execution.error, execution.cause) == ("FnF.Failed", "")


def test_an_empty_mapping_list_gives_an_empty_object() -> None:
    world = _run(
        """
        - type: task
          name: t
          resourceArn: acs:fc:::services/s/functions/echo
          inputMappings: []
        """,
        "outputMappings: []",
        a=1,
    )
    assert (world.received, world.execution.output) == ({"echo": [{}]}, {})


def test_the_last_of_two_entries_with_one_target_wins() -> None:
    mappings = "outputMappings: [{target: a, source: 1}, {target: a, source: 2}]"
    assert _run(f"- {{type: pass, name: p, {mappings}}}").execution.output == {"a": 2}


def test_an_existing_null_is_copied_even_where_missing_sources_fail() -> None:
    steps = "- {type: pass, name: p, outputMappings: [{target: a, source: $input.none}]}"
    assert _run(steps, missing_source="fail", none=None).execution.output == {"a": None}


def test_context_names_flow_execution_and_step() -> None:
    world = _run(
        """
        - type: pass
          name: p
          inputMappings: [{target: context, source: $context}]
          outputMappings: [{target: context, source: $input.context}, {target: id, source: $context.step.eventId}]
        """,
        "outputMappings: [{target: step, source: $local.context}, {target: flow, source: $context}]",
    )
    about = {"flow": {"name": "conf"}, "execution": {"name": "exec1", "startedTime": "2023-11-14T22:13:20.000Z"}}
    assert world.execution.output == {"step": about | {"step": {"name": "p", "eventId": 2}}, "flow": about}


@pytest.mark.parametrize("attribute", ["inputMappings", "outputMappings"])
def test_a_missing_source_fails_the_step_if_the_server_is_set_so(attribute: str) -> None:
    steps = f"- {{type: pass, name: p, {attribute}: [{{target: a, source: $input.b.c}}]}}"
    execution = _run(steps, missing_source="fail").execution
    assert execution.error == "FnF.RuntimeError"
    assert execution.cause == "the source $input.b.c of the mapping target 'a' was not found"
    assert _run(steps).execution.status is Status.SUCCEEDED


def test_a_step_whose_input_cannot_be_mapped_never_starts() -> None:
    steps = "- {type: pass, name: p, inputMappings: [{target: a, source: $local.b}]}"
    world = _run(steps, missing_source="fail")
    types = [event.type for event in world.events]
    assert types[1:4] == [EventType.STEP_ENTERED, EventType.STEP_FAILED, EventType.STEP_EXITED]


FLOW_INPUT = "inputMappings: [{target: n, source: $input.count}, {target: at, source: $context.execution.startedTime}]"


def test_the_flow_s_input_mappings_make_the_steps_input_and_the_history_shows_the_original() -> None:
    world = _run("- {type: pass, name: p}", FLOW_INPUT, count=3)
    mapped: JsonObject = {"n": 3, "at": "2023-11-14T22:13:20.000Z"}
    assert world.event(EventType.EXECUTION_STARTED) == {"input": {"count": 3}}
    assert world.event(EventType.STEP_ENTERED) == {"input": mapped, "local": {}}


def test_a_flow_whose_input_cannot_be_mapped_fails_without_a_step() -> None:
    world = _run("- {type: pass, name: p}", FLOW_INPUT, missing_source="fail")
    assert (world.execution.status, world.entered) == (Status.FAILED, [])


def test_a_flow_whose_output_cannot_be_mapped_fails_after_its_steps() -> None:
    attributes = "outputMappings: [{target: a, source: $local.b}]"
    world = _run("- {type: pass, name: p}", attributes, missing_source="fail")
    assert (world.execution.status, world.entered) == (Status.FAILED, ["p"])
