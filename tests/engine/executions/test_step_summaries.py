"""Step summaries of executions that were redriven."""

from flowserver.machine.step_summary import Iterations, StepSummary
from flowserver.operations.redrive_plans import RedriveWish
from tests.engine.called_functions import Call, Functions
from tests.engine.nodes import Node

PACK = """
- type: foreach
  name: pack
  iterationMapping: {collection: $.list, item: item}
  steps:
  - {type: task, name: label, resourceArn: 'acs:fc:::services/shop/functions/label'}
"""


async def test_a_redrive_keeps_finished_steps_and_counts_new_failures(node: Node, functions: Functions) -> None:
    broken = {3, 5}

    def answer(call: Call) -> None:
        if call.event["item"] in broken:
            call.fail("Torn")
        else:
            call.reply({})

    await node.register(functions, "shop/label")
    functions.scripts["shop/label"] = answer
    await node.create_flow("f", PACK)
    await node.start("f", "e", {"list": list(range(8))})
    await node.end_of("f", "e")
    pack, label = await _steps(node)
    assert (pack.status, label.status, label.error) == ("Failed", "Failed", "Torn")
    assert pack.iterations is not None
    assert (pack.iterations.total, pack.iterations.failed, pack.iterations.running) == (8, 1, 0)
    broken.clear()
    await node.operations.redrives.redrive("f", "e", RedriveWish())
    await node.end_of("f", "e")
    pack, label = await _steps(node)
    assert (pack.status, pack.entered, pack.succeeded) == ("Succeeded", 1, 1)
    assert pack.iterations == Iterations(total=8, done=8)
    assert (label.entered, label.succeeded, label.failed, label.cancelled) == (8, 8, 0, 0)


async def _steps(node: Node) -> list[StepSummary]:
    page = await node.operations.step_summaries.summarize("f", "e", next_token=None, limit=None)
    return list(page.items)
