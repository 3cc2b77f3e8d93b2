"""`foreach`: data of iterations, concurrency, joins, and invalid collections."""

from typing import Any

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.events import EventType
from flowserver.machine.messages import Continue, Failure, Success
from flowserver.machine.state import Status, WaitKind
from tests.conformance.cases import Reply
from tests.support.flows import flow
from tests.support.world import World, lines, trace

EACH = """
    - type: foreach
      name: each
      iterationMapping: {collection: $.list, item: it, index: i}
      steps:
      - {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}
      outputMappings: [{target: all, source: $local}]
"""


def _open_calls(world: World) -> list[int]:
    """The indexes of the iterations whose call is unanswered."""
    waiting = {scope.wait_id for scope in world.execution.scopes.values() if scope.wait is WaitKind.TASK}
    return [call.input["i"] for call in world.calls if call.wait_id in waiting]


def test_each_iteration_appears_between_entering_and_exiting() -> None:
    world = World(flow(EACH), input={"list": ["x", "y"]}, replies={"f": [Reply(returns={"r": 1})]})
    world.run()
    assert trace(world.events)[1:9] == lines("""
        2 1 each StepEntered      {"input":{"list":["x","y"]},"local":{}}
        3 2 each StepStarted      {"input":{"list":["x","y"]}}
        4 3 each IterationEntered {"input":{"list":["x","y"],"it":"x","i":0},"local":{},"index":0,"total":2}
        5 3 each IterationEntered {"input":{"list":["x","y"],"it":"y","i":1},"local":{},"index":1,"total":2}
        6 4 t    StepEntered      {"input":{"list":["x","y"],"it":"x","i":0},"local":{}}
        7 6 t    StepStarted      {"input":{"list":["x","y"],"it":"x","i":0}}
        8 7 t    TaskScheduled    {"resourceArn":"acs:fc:::services/s/functions/f","pattern":"requestResponse",\
"input":{"list":["x","y"],"it":"x","i":0}}
        9 8 t    TaskStarted      {}
    """)
    assert trace(world.events)[20:] == lines("""
        21 20 each IterationExited    {"local":{"r":1},"index":1}
        22 21 each StepSucceeded      {"output":[{"r":1},{"r":1}]}
        23 22 each StepExited         {"local":{"all":[{"r":1},{"r":1}]}}
        24 23 -    ExecutionSucceeded {"output":{"all":[{"r":1},{"r":1}]}}
    """)


def test_item_and_index_overwrite_fields_of_the_step_s_input() -> None:
    world = World(flow(EACH), input={"list": [5], "it": "old", "i": "old"})
    world.start()
    assert world.calls[0].input == {"list": [5], "it": 5, "i": 0}


def test_the_index_is_optional_and_an_item_may_even_replace_the_collection() -> None:
    steps = EACH.replace("item: it, index: i", "item: list").replace("functions/f", "functions/echo")
    world = World(flow(steps), input={"list": [1, [2]]})
    world.run()
    assert world.execution.output == {"all": [{"list": 1}, {"list": [2]}]}


def test_the_window_limits_concurrency_and_the_result_keeps_the_order() -> None:
    world = World(flow(EACH), input={"list": list(range(5))}, limits=Limits(foreach_concurrency_max=2))
    world.start()
    assert _open_calls(world) == [0, 1]
    for index, opened in [(1, [0, 2]), (2, [0, 3]), (0, [3, 4]), (4, [3])]:
        call = next(call for call in world.calls if call.input["i"] == index)
        world.reply(Success({"r": index}), call)
        assert _open_calls(world) == opened
    world.reply(Success({"r": 3}), next(call for call in world.calls if call.input["i"] == 3))
    assert world.execution.output == {"all": [{"r": index} for index in range(5)]}


def test_iterations_that_end_at_once_open_the_next_ones_in_the_same_turn() -> None:
    steps = """
        - type: foreach
          name: each
          iterationMapping: {collection: $.list, item: it}
          steps:
          - {type: pass, name: p, outputMappings: [{target: r, source: $input.it}]}
          outputMappings: [{target: rs, source: '$local[*].r'}]
    """
    world = World(flow(steps), input={"list": list(range(20))}, limits=Limits(foreach_concurrency_max=3))
    world.start()
    assert world.execution.output == {"rs": list(range(20))}


def test_an_empty_collection_succeeds_with_an_empty_array() -> None:
    world = World(flow(EACH), input={"list": []})
    world.start()
    assert trace(world.events)[2:] == lines("""
        3 2 each StepStarted        {"input":{"list":[]}}
        4 3 each StepSucceeded      {"output":[]}
        5 4 each StepExited         {"local":{"all":[]}}
        6 5 -    ExecutionSucceeded {"output":{"all":[]}}
    """)


@pytest.mark.parametrize("value", [None, 5, "abc", {"0": 1}, True], ids=repr)
def test_a_collection_that_is_not_an_array_fails_the_step(value: Any) -> None:
    world = World(flow(EACH), input={"list": value})
    world.run()
    assert (world.execution.error, world.execution.cause) == (
        "FnF.RuntimeError",
        "the collection $.list is not an array",
    )
    assert world.entered == ["each"]


def test_a_missing_collection_fails_the_step() -> None:
    world = World(flow(EACH))
    world.run()
    assert world.execution.cause == "the collection $.list was not found in the step's input"


def test_a_collection_longer_than_allowed_fails_the_step() -> None:
    limits = Limits(foreach_items_max=3)
    world = World(flow(EACH), input={"list": [0] * 3}, limits=limits, replies={"f": [Reply(returns={})]})
    assert world.run().status is Status.SUCCEEDED
    world = World(flow(EACH), input={"list": [0] * 4}, limits=limits)
    assert world.run().cause == "the collection $.list has 4 items; the limit is 3"


def test_a_failing_iteration_fails_the_step_and_opens_no_other() -> None:
    world = World(flow(EACH), input={"list": [0, 1, 2]}, limits=Limits(foreach_concurrency_max=2))
    world.start()
    turn = world.reply(Failure("E"), world.calls[1])
    assert len(world.calls) == 2
    assert trace(turn.events)[3:] == lines("""
        17 16 each IterationExited {"local":{},"index":1}
        18  9 t    StepExited      {"local":{},"cancelled":true}
        19 18 each IterationExited {"local":{},"index":0,"cancelled":true}
        20 17 each StepFailed      {"error":"E","cause":""}
        21 20 each StepExited      {"local":{}}
        22 21 -    ExecutionFailed {"error":"E","cause":""}
    """)


def test_a_caught_error_lets_its_iteration_succeed() -> None:
    steps = EACH.replace(
        "functions/f'}",
        "functions/f', catch: [{errors: [Bad], goto: skip}], end: true}\n      - {type: pass, name: skip}",
    )
    replies = {"f": [Reply(returns={"r": 0}), Reply(raises="Bad"), Reply(returns={"r": 2})]}
    world = World(flow(steps), input={"list": [0, 1, 2]}, replies=replies)
    world.run()
    assert world.execution.output == {"all": [{"r": 0}, {}, {"r": 2}]}


def test_loops_nest_and_may_reuse_names() -> None:
    world = World(
        flow("""
            - type: foreach
              name: rows
              iterationMapping: {collection: $.table, item: row, index: i}
              steps:
              - type: foreach
                name: cells
                iterationMapping: {collection: $.row, item: cell, index: i}
                steps:
                - type: pass
                  name: p
                  outputMappings: [{target: at, source: $input.i}, {target: v, source: $input.cell}]
                outputMappings: [{target: vs, source: '$local[*].v'}, {target: ats, source: '$local[*].at'}]
              outputMappings: [{target: flat, source: '$local[*].vs[*]'}, {target: ats, source: '$local[*].ats'}]
        """),
        input={"table": [[1, 2], [], [3]]},
    )
    world.run()
    assert world.execution.output == {"flat": [1, 2, 3], "ats": [[0, 1], [], [0]]}


# Finished iterations that are not in memory


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_a_loaded_execution_requests_finished_iterations_at_the_join_only(order: list[int]) -> None:
    world = World(flow(EACH), input={"list": ["a", "b", "c", "d"]})
    world.start()
    calls = world.calls[:]
    wanted = []
    for item in order:
        world.reload()
        wanted.append(world.reply(Success({"r": item}), calls[item]).wanted)
    assert wanted == [set(), set(), set(), {1}]
    assert world.execution.is_running
    world.tell(Continue())
    assert world.execution.output == {"all": [{"r": 0}, {"r": 1}, {"r": 2}, {"r": 3}]}


def test_a_join_continues_once_its_finished_iterations_are_loaded() -> None:
    world = World(flow(EACH), input={"list": ["a", "b"]})
    world.start()
    first, second = world.calls
    world.reply(Success({"r": 0}), first)
    world.reload()
    turn = world.reply(Success({"r": 1}), second)
    assert (turn.more, turn.wanted, turn.events[-1].type) == (True, {1}, EventType.STEP_EXITED)
    world.reload()
    assert world.tell(Continue()).wanted == {1}, "requested again"
    assert world.tell(Continue()).wanted == set()
    assert world.execution.output == {"all": [{"r": 0}, {"r": 1}]}


def test_a_window_of_one_requests_once() -> None:
    world = World(flow(EACH), input={"list": list(range(5))}, limits=Limits(foreach_concurrency_max=1))
    world.start()
    asked = 0
    while world.execution.is_running:
        world.reload()
        turn = world.tell(Continue()) if world.more else world.reply(Success({"r": 1}))
        asked += len(turn.wanted)
        if turn.wanted:
            world.tell(Continue())
    assert (asked, world.execution.output) == (1, {"all": [{"r": 1}] * 5})


def test_finished_iterations_count_as_lists_of_the_execution() -> None:
    world = World(flow(EACH), input={"list": [1, 2, 3]}, limits=Limits(live_scopes_max=3, foreach_concurrency_max=1))
    world.start()
    world.reload()
    world.reply(Success({}))
    world.reply(Success({}))
    assert world.execution.cause == "more than 3 step lists are open at once"
