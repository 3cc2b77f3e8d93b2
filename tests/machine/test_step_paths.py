"""The location of an execution's failure, as a path of steps."""

from flowserver.base.limits import Limits
from flowserver.machine.messages import Failure, Stop, Success
from tests.conformance.cases import Reply
from tests.support.flows import flow
from tests.support.world import World

CALL = "type: task, resourceArn: 'acs:fc:::services/s/functions/{}'"
PACK = f"""
    - type: foreach
      name: pack
      iterationMapping: {{collection: $.list, item: it}}
      steps:
      - type: choice
        name: check
        choices:
        - condition: 'true'
          steps:
          - type: parallel
            name: ship
            branches:
            - steps: [{{name: wait, type: wait, duration: 60}}]
            - steps: [{{name: book, {CALL.format("book")}}}]
"""


def test_a_step_within_iterations_options_and_branches() -> None:
    world = World(flow(PACK), input={"list": [1, 2, 3]})
    world.start()
    assert world.execution.failed_step is None
    world.reply(Failure("Full"), world.calls[1])
    assert world.execution.failed_step == "pack[1].check.ship[1].book"


def test_an_end_from_outside_has_no_path() -> None:
    world = World(flow(PACK), input={"list": [1]})
    world.start()
    world.tell(Stop("Enough", None))
    assert world.execution.failed_step is None


def test_a_success_has_no_path() -> None:
    world = World(flow(f"    - {{name: f, {CALL.format('f')}}}"), replies={"f": [Reply(returns={})]})
    world.run()
    assert world.execution.failed_step is None


def test_an_answer_that_is_too_large() -> None:
    world = World(flow(f"    - {{name: f, {CALL.format('f')}}}"), limits=Limits(step_data_bytes_max=40))
    world.start()
    world.reply(Success({"a": "x" * 60}))
    assert world.execution.failed_step == "f"
