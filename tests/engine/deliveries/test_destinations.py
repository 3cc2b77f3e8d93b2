"""Functions as subscribers of topics, and destinations of invocation results."""

import asyncio
import base64
import json
from typing import Any

import pytest
from sqlalchemy import update

from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.operations.queues import QueueAttributes
from flowserver.operations.subscriptions import SubscriptionAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.store.schema.queue_tables import deliveries
from tests.engine.called_functions import Functions
from tests.engine.delivering import advance, attempted, left, settled
from tests.engine.invocations.test_invocations import configure, ended, new, reached
from tests.engine.nodes import Node
from tests.support.clock import ManualClock

QUEUE = "acs:mns:cn-hangzhou:1:/queues/q/messages"
FUNCTION = "acs:fc:cn-hangzhou:1:services/shop.prod/functions/note"


@pytest.fixture(autouse=True)
async def registered(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay", "shop/note")


def to(destination: str, when: str = "onSuccess") -> dict[str, Any]:
    return {"destinationConfig": {when: {"destination": destination}}}


async def test_a_function_subscribes(node: Node, functions: Functions) -> None:
    await node.operations.topics.create("news", TopicAttributes())
    attributes = SubscriptionAttributes(endpoint=FUNCTION, content_format=ContentFormat.JSON)
    await node.operations.subscriptions.subscribe("news", "s", attributes)
    message = await node.operations.topics.publish("news", "hello", "red")
    call = await functions.next_call("shop/note")
    assert (call.event["Message"], call.event["MessageId"]) == ("hello", message.message_id)
    assert call.headers["X-Fc-Qualifier"] == "prod"
    call.reply({})
    row = await ended(node, call.key)
    assert (row.service, row.qualifier, row.function) == ("shop", "prod", "note")
    assert await settled(node) == {}


async def test_a_function_registered_later_still_gets_the_message(
    node: Node, functions: Functions, clock: ManualClock
) -> None:
    await node.operations.topics.create("news", TopicAttributes())
    attributes = SubscriptionAttributes(
        endpoint="acs:fc:::services/shop/functions/late", strategy=Strategy.EXPONENTIAL_DECAY
    )
    await node.operations.subscriptions.subscribe("news", "s", attributes)
    await asyncio.gather(attempted(node), node.operations.topics.publish("news", '{"n": 1}'))
    assert len(left(node)) == 1
    await node.register(functions, "shop/late")
    functions.echo("shop/late")
    advance(node, clock, 1)
    await attempted(node)
    assert await settled(node) == {}


async def test_a_result_goes_to_a_queue(node: Node, functions: Functions) -> None:
    await node.operations.queues.create("q", QueueAttributes())
    configure(node, **to(QUEUE))
    waiting = asyncio.create_task(node.operations.queues.receive("q", wait_seconds=20))
    await node.engine.invocations.submit(new("k"))
    (await functions.next_call("shop/pay")).reply({"paid": True})
    (message,) = await waiting
    document = json.loads(base64.b64decode(message.body))
    assert document["requestContext"]["requestId"] == "request-k"
    assert document["responsePayload"] == {"paid": True}
    row = await reached(node, "k", lambda row: row.destination_status is not None)
    assert row.destination_status == "Succeeded"


async def test_a_failure_goes_to_a_function(node: Node, functions: Functions) -> None:
    configure(node, **to(FUNCTION, "onFailure"), maxAsyncRetryAttempts=0)
    await node.engine.invocations.submit(new("k"))
    (await functions.next_call("shop/pay")).fail("CardDeclined")
    call = await functions.next_call("shop/note")
    assert call.event["responseContext"]["functionError"] == "UnhandledInvocationError"
    call.reply({})
    row = await reached(node, "k", lambda row: row.destination_status is not None)
    assert row.destination_status == "Succeeded"


async def test_a_destination_that_never_exists(node: Node, functions: Functions) -> None:
    configure(node, **to(QUEUE))
    functions.echo("shop/pay")
    await asyncio.gather(attempted(node), node.engine.invocations.submit(new("k")))
    assert await settled(node) == {"k": 1}
    with node.database.write() as connection:  # a day later
        connection.execute(update(deliveries).values(attempt=176, wake_at=0))
    node.engine.deliveries.note_due()
    row = await reached(node, "k", lambda row: row.destination_status is not None)
    assert row.destination_status == "Failed"
    assert left(node) == {}
