import pytest

from tests.engine.called_functions import Call, Functions
from tests.engine.nodes import Node


@pytest.fixture
async def broken_items(node: Node, functions: Functions) -> set[int]:
    """Function `shop/label` fails with `Torn` for these items, which a test changes; there are none at first."""
    broken: set[int] = set()

    def answer(call: Call) -> None:
        if call.event["item"] in broken:
            call.fail("Torn")
        else:
            call.reply({})

    await node.register(functions, "shop/label")
    functions.scripts["shop/label"] = answer
    return broken
