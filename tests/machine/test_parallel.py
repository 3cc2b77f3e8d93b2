"""`parallel`: concurrent branches, joined in order, and the effect of a failing branch on the others."""

from flowserver.base.json_values import load_json
from flowserver.machine.commands import CancelInvocation
from flowserver.machine.events import EventType
from flowserver.machine.messages import Continue, Failure, Success, TaskReplied, TimerFired
from flowserver.machine.state import Status, WaitKind
from flowserver.machine.turn import OutcomeKind
from tests.support.flows import flow
from tests.support.world import World, lines, trace

TWO_TASKS = """
    - type: parallel
      name: both
      branches:
      - steps:
        - {type: task, name: a, resourceArn: 'acs:fc:::services/s/functions/f'}
      - steps:
        - {type: task, name: b, resourceArn: 'acs:fc:::services/s/functions/g'}
      outputMappings: [{target: all, source: $local}]
"""


def test_branches_start_together_and_the_last_exit_completes_the_step() -> None:
    world = World(
        flow("""
            - type: parallel
              name: both
              branches:
              - steps:
                - {type: pass, name: a, outputMappings: [{target: r, source: 1}]}
              - steps:
                - {type: wait, name: b, duration: 1, outputMappings: [{target: r, source: 2}]}
              outputMappings: [{target: rs, source: '$local[*].r'}]
        """),
        input={"k": 0},
    )
    world.run()
    assert trace(world.events) == lines("""
         1  0 -    ExecutionStarted   {"input":{"k":0}}
         2  1 both StepEntered        {"input":{"k":0},"local":{}}
         3  2 both StepStarted        {"input":{"k":0}}
         4  3 both BranchEntered      {"input":{"k":0},"local":{},"index":0}
         5  3 both BranchEntered      {"input":{"k":0},"local":{},"index":1}
         6  4 a    StepEntered        {"input":{"k":0},"local":{}}
         7  6 a    StepStarted        {"input":{"k":0}}
         8  7 a    StepSucceeded      {"output":{}}
         9  8 a    StepExited         {"local":{"r":1}}
        10  5 b    StepEntered        {"input":{"k":0},"local":{}}
        11 10 b    StepStarted        {"input":{"k":0}}
        12  9 both BranchExited       {"local":{"r":1},"index":0}
        13 11 b    StepSucceeded      {"output":{}}
        14 13 b    StepExited         {"local":{"r":2}}
        15 14 both BranchExited       {"local":{"r":2},"index":1}
        16 15 both StepSucceeded      {"output":[{"r":1},{"r":2}]}
        17 16 both StepExited         {"local":{"rs":[1,2]}}
        18 17 -    ExecutionSucceeded {"output":{"rs":[1,2]}}
    """)


def test_the_joined_array_follows_the_definition_not_the_clock() -> None:
    world = World(flow(TWO_TASKS))
    world.start()
    first, second = world.calls
    world.reply(Success({"r": 2}), second)
    assert 3 not in world.execution.scopes
    world.reply(Success({"r": 1}), first)
    assert world.execution.output == {"all": [{"r": 1}, {"r": 2}]}


def test_nothing_wakes_a_finished_branch() -> None:
    world = World(flow(TWO_TASKS))
    world.start()
    call = world.calls[1]
    world.reply(Success({}), call)
    assert world.ignores(TaskReplied(call.scope_id, call.wait_id, Success({})))
    assert world.ignores(TimerFired(call.scope_id, call.wait_id))


def test_a_join_has_no_timer() -> None:
    world = World(flow(TWO_TASKS))
    world.start()
    assert world.scope.wait is WaitKind.JOIN
    assert world.ignores(TimerFired(1, world.scope.wait_id))
    assert world.ignores(TaskReplied(1, world.scope.wait_id, Success({})))


def test_the_first_failure_wins_and_ends_the_other_branches() -> None:
    world = World(flow(TWO_TASKS))
    world.start()
    first, second = world.calls
    turn = world.reply(Failure("E2", "second"), second)
    assert trace(turn.events) == lines("""
        14 13 b    TaskFailed      {"error":"E2","cause":"second"}
        15 14 b    StepFailed      {"error":"E2","cause":"second"}
        16 15 b    StepExited      {"local":{}}
        17 16 both BranchExited    {"local":{},"index":1}
        18  9 a    StepExited      {"local":{},"cancelled":true}
        19 18 both BranchExited    {"local":{},"index":0,"cancelled":true}
        20 17 both StepFailed      {"error":"E2","cause":"second"}
        21 20 both StepExited      {"local":{}}
        22 21 -    ExecutionFailed {"error":"E2","cause":"second"}
    """)
    assert turn.commands == [CancelInvocation(first.scope_id, first.wait_id)]
    assert world.ignores(TaskReplied(first.scope_id, first.wait_id, Failure("E1")), OutcomeKind.ENDED)


def test_a_failure_closes_everything_below_its_siblings_innermost_first() -> None:
    world = World(
        flow("""
            - type: parallel
              name: outer
              branches:
              - steps:
                - type: choice
                  name: c
                  default:
                    steps:
                    - type: foreach
                      name: each
                      iterationMapping: {collection: $.list, item: it}
                      steps:
                      - {type: wait, name: w, duration: $.it}
              - steps:
                - {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}
        """),
        input={"list": [1, 9]},
    )
    world.start()
    world.wake()  # the first iteration has finished and exited
    turn = world.reply(Failure("E"))
    exits = [event for event in turn.events if event.type.endswith("Exited")]
    cancelled = [(event.step_name, event.type) for event in exits if "cancelled" in load_json(event.detail)]
    assert cancelled == [
        ("w", EventType.STEP_EXITED),
        ("each", EventType.ITERATION_EXITED),
        ("each", EventType.STEP_EXITED),
        ("c", EventType.STEP_EXITED),
        ("outer", EventType.BRANCH_EXITED),
    ]


def test_a_branch_that_has_not_begun_is_closed_without_a_step() -> None:
    world = World(
        flow("""
            - type: parallel
              name: both
              branches:
              - steps:
                - {type: fail, name: f, error: E}
              - steps:
                - {type: pass, name: never}
        """)
    )
    world.run()
    assert world.entered == ["both", "f"]
    assert (world.execution.status, world.execution.error) == (Status.FAILED, "E")


def test_a_loaded_execution_requests_finished_branches_at_the_join() -> None:
    world = World(flow(TWO_TASKS))
    world.start()
    first, second = world.calls
    world.reply(Success({"r": 2}), second)
    world.reload()
    assert world.reply(Success({"r": 1}), first).wanted == {1}
    world.tell(Continue())
    assert world.execution.output == {"all": [{"r": 1}, {"r": 2}]}
