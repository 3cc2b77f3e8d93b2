"""Steps that send to queues and topics: the message, the worker's report, and one message per attempt."""

import hashlib
import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.events import EventType
from flowserver.operations.queues import QueueAttributes
from flowserver.operations.subscriptions import SubscriptionAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.store.queues.messages import QueueMessage
from flowserver.store.schema.queue_tables import queue_messages
from tests.engine.nodes import FragileDatabase, Node, running_node, take_for_dead
from tests.support.clock import ManualClock

SEND = """
- type: task
  name: send
  resourceArn: acs:mns:::/queues/jobs/messages
  serviceParams: {MessageBody: $}
"""
ASK = f"""{SEND}
  pattern: waitForCallback
  inputMappings: [{{target: token, source: $context.task.token}}, {{target: what, source: $input.what}}]
"""


@pytest.fixture(autouse=True)
async def jobs(node: Node) -> None:
    await node.operations.queues.create("jobs", QueueAttributes())


async def received(node: Node, count: int = 16, queue: str = "jobs") -> list[QueueMessage]:
    return list(await node.operations.queues.receive(queue, count=count, wait_seconds=20))


def decoded(message: QueueMessage) -> Any:
    return json.loads(b64decode(message.body))


async def test_the_received_message_and_the_step_output(node: Node) -> None:
    await node.create_flow("f", SEND)
    await node.start("f", "e", {"order": 5, "von": "Zoë"})
    (message,) = await received(node)
    assert decoded(message) == {"order": 5, "von": "Zoë"}
    answer = await node.output_of("f", "e")
    assert (answer["MessageId"], answer["MessageBodyMD5"]) == (message.message_id, message.body_md5)
    assert answer["MessageBodyMD5"] == hashlib.md5(message.body.encode()).hexdigest().upper()
    assert set(answer) == {"MessageId", "MessageBodyMD5", "RequestId"}


async def test_priority_and_delay(node: Node, clock: ManualClock) -> None:
    params = "MessageBody: {is: $.is}, Priority: $.p, DelaySeconds: $.d"
    await node.create_flow("f", SEND.replace("MessageBody: $", params))
    for name, priority, delay in (("late", 1, 60), ("last", 16, 0), ("plain", None, None), ("first", 2, 0)):
        await node.start("f", name, {"is": name, "p": priority, "d": delay})
        await node.output_of("f", name)
    assert [decoded(message)["is"] for message in await received(node)] == ["first", "plain", "last"]
    clock.advance(seconds=60)
    assert [decoded(message)["is"] for message in await received(node, 1)] == ["late"]


async def test_a_worker_reports_with_the_token_of_the_message(node: Node) -> None:
    await node.create_flow("f", ASK)
    await node.start("f", "e", {"what": "a chair"})
    (message,) = await received(node)
    submitted = json.loads((await node.reached("f", "e", EventType.TASK_SUBMITTED)).detail)["output"]
    assert submitted["MessageId"] == message.message_id
    job = decoded(message)
    assert job["what"] == "a chair"
    await node.operations.tasks.report_succeeded(job["token"], '{"granted":true}')
    assert await node.output_of("f", "e") == {"granted": True}


async def test_every_retry_sends_another_message_with_the_same_token(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", ASK + "  retry: [{errors: [Busy], intervalSeconds: 0, maxAttempts: 1}]\n")
    await node.start("f", "e", {"what": "a chair"})
    (first,) = await received(node)
    await node.operations.tasks.report_failed(decoded(first)["token"], "Busy", None)
    (second,) = await received(node)
    assert decoded(first)["token"] == decoded(second)["token"]
    assert first.message_id != second.message_id


PUBLISH = SEND.replace("queues/jobs", "topics/news").replace("}", ", MessageTag: $.tag, MessageAttributes: {k: $.tag}}")


async def test_a_topic_delivers_to_subscribers_of_the_tag(node: Node) -> None:
    await node.operations.topics.create("news", TopicAttributes())
    for name, tag in (("all", None), ("red", "red")):
        await node.operations.queues.create(name, QueueAttributes())
        wanted = SubscriptionAttributes(
            endpoint=f"acs:mns:::queues/{name}", filter_tag=tag, content_format=ContentFormat.SIMPLIFIED
        )
        await node.operations.subscriptions.subscribe("news", name, wanted)
    await node.create_flow("f", PUBLISH)
    for name, tag in (("one", "red"), ("two", "blue"), ("three", None)):
        await node.start("f", name, {"is": name, "tag": tag})
        assert (await node.output_of("f", name))["MessageId"]
    assert [json.loads(message.body)["is"] for message in await received(node, 1, "red")] == ["one"]
    everything = [json.loads(message.body)["is"] for _ in range(3) for message in await received(node, 1, "all")]
    assert sorted(everything) == ["one", "three", "two"]


async def test_a_topic_that_does_not_exist(node: Node) -> None:
    await node.create_flow("f", PUBLISH)
    await node.start("f", "e", {"tag": "red"})
    assert await node.error_of("f", "e") == "MNS.TopicNotExist"


@pytest.mark.parametrize("tag", ["a\nb", "a\0b", "\x1b"])
async def test_a_tag_that_is_not_valid_in_a_header(node: Node, tag: str) -> None:
    await node.operations.topics.create("news", TopicAttributes())
    await node.create_flow("f", PUBLISH)
    await node.start("f", "e", {"tag": tag})
    assert await node.error_of("f", "e") == "MNS.InvalidArgument"


async def test_a_worker_may_report_to_the_publisher(node: Node) -> None:
    await node.operations.topics.create("news", TopicAttributes())
    wanted = SubscriptionAttributes(endpoint="acs:mns:::queues/jobs", content_format=ContentFormat.SIMPLIFIED)
    await node.operations.subscriptions.subscribe("news", "s", wanted)
    await node.create_flow("f", ASK.replace("queues/jobs", "topics/news"))
    await node.start("f", "e", {"what": "news"})
    (message,) = await received(node)
    await node.operations.tasks.report_succeeded(json.loads(message.body)["token"], '{"read":true}')
    assert await node.output_of("f", "e") == {"read": True}


@pytest.mark.parametrize(
    ("queue", "body", "error"),
    [
        ("gone", "$", "MNS.QueueNotExist"),
        ("jobs", "$.long", "MNS.InvalidArgument"),
        ("jobs", "$.empty", "MNS.InvalidArgument"),
    ],
)
async def test_a_message_that_cannot_be_sent(node: Node, queue: str, body: str, error: str) -> None:
    send = SEND.replace("/jobs/", f"/{queue}/").replace("MessageBody: $", f"MessageBody: {body}")
    await node.create_flow("f", send)
    await node.start("f", "e", {"long": "x" * 65_536, "empty": ""})
    assert await node.error_of("f", "e") == error


async def test_bodies_may_be_plain_text(open_database: Callable[[], FragileDatabase], clock: ManualClock) -> None:
    async with running_node(open_database(), clock, node_id="plain", queue_bodies="plain") as node:
        await node.create_flow("f", SEND.replace("MessageBody: $", "MessageBody: $.text"))
        await node.start("f", "e", {"text": "as <it> is\n"})
        (message,) = await received(node)
        assert message.body == "as <it> is\n"
        await node.start("f", "odd", {"text": "\0"})
        assert await node.error_of("f", "odd") == "MNS.InvalidArgument"


async def test_a_lost_answer_of_the_database_leaves_one_message(node: Node) -> None:
    await node.create_flow("f", SEND)
    node.database.lose_answer_of(select(queue_messages))
    await node.start("f", "e")
    await node.output_of("f", "e")
    assert node.database.has_lied
    (message,) = await received(node)
    assert message.dequeue_count == 1


async def test_a_call_that_is_ordered_again_leaves_one_message(
    node: Node, open_database: Callable[[], FragileDatabase], clock: ManualClock
) -> None:
    """The first node dies after it has sent, before it commits the result."""
    await node.create_flow("f", SEND)
    database = open_database()
    async with running_node(database, clock, node_id="dies") as other:
        send = other.engine.queues.send

        async def last(*args: Any, **options: Any) -> Any:
            sent = await send(*args, **options)
            database.crashed = True
            return sent

        other.engine.queues.send = last  # type: ignore[method-assign]
        await other.start("f", "e")
        await database.failed()
    take_for_dead(node.database, "dies")
    await node.engine.recovery.sweep()
    await node.output_of("f", "e")
    (message,) = await received(node)
    assert message.dequeue_count == 1
