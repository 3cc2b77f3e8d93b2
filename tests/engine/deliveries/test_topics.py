"""A published message reaches its subscribers, in the commit that publishes it."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import OperationalError

from flowserver.base.errors import InvalidArgument, QueueNotExist, ResourceThrottled, TopicNotExist
from flowserver.base.limits import Limits
from flowserver.engine.deliveries.publishing import NewTopicMessage
from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.operations.queues import QueueAttributes
from flowserver.operations.subscriptions import SubscriptionAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.store.schema.queue_tables import deliveries
from tests.engine.delivering import advance, attempted, deliver, left, settled
from tests.engine.held_threads import Gate
from tests.engine.nodes import Node
from tests.engine.subscribers import Subscriber
from tests.support.clock import ManualClock

QUEUE = "acs:mns:cn-hangzhou:1234:queues/q"


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    server = Subscriber()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def topic(node: Node) -> str:
    assert await node.operations.topics.create("news", TopicAttributes())
    return "news"


async def subscribe(node: Node, name: str, endpoint: str, **changes: Any) -> None:
    attributes = SubscriptionAttributes(**{"content_format": ContentFormat.SIMPLIFIED, **changes}, endpoint=endpoint)
    assert await node.operations.subscriptions.subscribe("news", name, attributes)


async def test_a_message_reaches_all_matching_subscribers(node: Node, topic: str, subscriber: Subscriber) -> None:
    for name, tag in (("all", None), ("red", "red"), ("blue", "blue")):
        await subscribe(node, name, subscriber.url(name), filter_tag=tag)
    message = await node.operations.topics.publish(topic, "hello", "red")
    pushes = [await subscriber.next() for _ in range(2)]
    assert {push.path for push in pushes} == {"all", "red"}
    assert {push.headers["x-mns-message-id"] for push in pushes} == {message.message_id}
    assert message.body_md5 == "5D41402ABC4B2A76B9719D911017C592"
    assert await settled(node) == {}
    assert not subscriber.has_more


async def test_a_message_without_matching_subscribers(node: Node, topic: str, subscriber: Subscriber) -> None:
    await subscribe(node, "red", subscriber.url("red"), filter_tag="red")
    assert (await node.operations.topics.publish(topic, "hello")).message_id
    assert await settled(node) == {}


async def test_a_message_counts_until_all_subscribers_have_it(
    node: Node, topic: str, subscriber: Subscriber, clock: ManualClock
) -> None:
    subscriber.status["slow"] = 500
    await subscribe(node, "slow", subscriber.url("slow"), strategy=Strategy.EXPONENTIAL_DECAY)
    await subscribe(node, "quick", subscriber.url("quick"))
    await asyncio.gather(attempted(node, 2), node.operations.topics.publish(topic, "hello"))
    assert (await node.operations.topics.describe(topic))[1] == 1
    subscriber.status["slow"] = 200

    advance(node, clock, 1)
    await attempted(node)
    assert (await node.operations.topics.describe(topic))[1] == 0


async def test_a_repeated_message_reaches_subscribers_that_have_not_received_it(
    node: Node, topic: str, subscriber: Subscriber
) -> None:
    subscriber.status["hook"] = 500
    await subscribe(node, "s", subscriber.url("hook"))
    for _ in range(2):
        await node.engine.topics.publish(topic, NewTopicMessage(message_id="M", body="hello"))
    await subscriber.next()
    assert len(await settled(node)) == 1


async def test_unsubscribing_drops_undelivered_messages(node: Node, topic: str, subscriber: Subscriber) -> None:
    subscriber.status["hook"] = 500
    for name in ("one", "other"):
        await subscribe(node, name, subscriber.url("hook"))
    await asyncio.gather(attempted(node, 2), node.operations.topics.publish(topic, "hello"))
    assert len(left(node)) == 2
    await node.operations.subscriptions.unsubscribe(topic, "one")
    assert len(left(node)) == 1
    await node.operations.topics.delete(topic)
    assert left(node) == {}
    with pytest.raises(TopicNotExist):
        await node.operations.topics.publish(topic, "hello")
    assert await node.operations.topics.create(topic, TopicAttributes())
    assert (await node.operations.subscriptions.list(topic, prefix="", marker="", limit=None)).items == []


async def test_a_queue_gets_each_message_once(node: Node, topic: str) -> None:
    await node.operations.queues.create("q", QueueAttributes())
    await subscribe(node, "plain", QUEUE)
    await subscribe(node, "document", "acs:mns:::/queues/q/messages", content_format=ContentFormat.JSON)
    await asyncio.gather(attempted(node, 2), node.operations.topics.publish(topic, "hello", "red"))
    bodies = [message.body for message in await node.operations.queues.receive("q", count=16)]
    assert "hello" in bodies
    bodies.remove("hello")
    document = json.loads(bodies[0])
    assert (document["Message"], document["SubscriptionName"]) == ("hello", "document")
    assert await settled(node) == {}


async def test_a_delivery_wakes_a_long_poll_at_the_queue(node: Node, topic: str) -> None:
    await node.operations.queues.create("q", QueueAttributes())
    await subscribe(node, "s", QUEUE)
    waiting = asyncio.create_task(node.operations.queues.receive("q", wait_seconds=20))
    await node.operations.topics.publish(topic, "hello")
    (message,) = await waiting
    assert message.body == "hello"


async def test_a_queue_created_later_still_gets_the_message(node: Node, topic: str, clock: ManualClock) -> None:
    await subscribe(node, "s", QUEUE, strategy=Strategy.EXPONENTIAL_DECAY)
    await asyncio.gather(attempted(node), node.operations.topics.publish(topic, "hello"))
    with pytest.raises(QueueNotExist):
        await node.operations.queues.peek("q")
    await node.operations.queues.create("q", QueueAttributes())
    advance(node, clock, 1)
    await attempted(node)
    assert [message.body for message in await node.operations.queues.receive("q")] == ["hello"]


async def test_a_result_reaches_a_queue_in_the_format_its_workers_read(node: Node) -> None:
    await node.operations.queues.create("q", QueueAttributes())
    await asyncio.gather(attempted(node), deliver(node, QUEUE, "1", invocation_key="k", body='{"a": "值"}'))
    (message,) = await node.operations.queues.receive("q")
    assert message.body == "eyJhIjogIuWAvCJ9"


async def test_a_result_reaches_the_subscribers_of_a_topic(node: Node, topic: str, subscriber: Subscriber) -> None:
    await subscribe(node, "s", subscriber.url("hook"))
    await deliver(node, "acs:mns:::/topics/news/messages", "1", invocation_key="k", body='{"a": 1}')
    push = await subscriber.next()
    assert (push.body, push.headers["x-mns-message-id"]) == ('{"a": 1}', "1")
    assert await settled(node) == {}


@pytest.mark.parametrize("limits", [Limits(topic_subscriptions_max=2)])
async def test_the_number_of_subscriptions_of_a_topic_is_limited(node: Node, topic: str) -> None:
    await subscribe(node, "1", QUEUE)
    await subscribe(node, "2", QUEUE)
    with pytest.raises(ResourceThrottled):
        await subscribe(node, "3", QUEUE)
    attributes = SubscriptionAttributes(endpoint=QUEUE, content_format=ContentFormat.SIMPLIFIED)
    assert not await node.operations.subscriptions.subscribe(topic, "2", attributes)


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("acs:mns:::topics/news", "round for ever"),
        ("mail:directmail:a@b", r"write http[^ ]*, acs:mns:[^ ]*queues/[^ ]* or acs:fc"),
        ("http://169.254.169.254/", "refused"),
        ("http://user:password@h/", "credentials"),
        ("http://h/#part", "fragment"),
        (f"http://h/{'x' * 2100}", "at most 2048"),
    ],
)
async def test_invalid_endpoints(node: Node, topic: str, endpoint: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        await subscribe(node, "s", endpoint)


async def test_a_body_is_limited_by_the_length_that_its_topic_allows(node: Node, topic: str) -> None:
    await node.operations.topics.set_attributes(topic, TopicAttributes(message_bytes_max=1024))
    await node.operations.topics.publish(topic, "x" * 1024)
    with pytest.raises(InvalidArgument, match="1025 bytes"):
        await node.operations.topics.publish(topic, "x" * 1025)
    with pytest.raises(InvalidArgument, match="missing"):
        await node.operations.topics.publish(topic, "")
    for tag in ("x" * 17, "a\r\nb", "\0"):
        with pytest.raises(InvalidArgument, match="tag"):
            await node.operations.topics.publish(topic, "hello", tag)


async def test_messages_published_together_share_one_write_and_fail_alone(
    node: Node, topic: str, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, publications = list[int](), node.engine.topics._publications
    apply = publications._apply

    def count_and_apply(connection: Connection, items: Sequence[Any]) -> Sequence[Any]:
        groups.append(len(items))
        return apply(connection, items)

    monkeypatch.setattr(publications, "_apply", count_and_apply)
    await subscribe(node, "s", subscriber.url("hook"))
    await node.operations.topics.set_attributes(topic, TopicAttributes(message_bytes_max=1024))
    gate, publish = Gate(), node.engine.topics.publish
    gated = asyncio.create_task(node.engine.committer.write(gate))
    await gate.reached.wait()
    bodies = ["1", "x" * 1025, "2", "3"]
    tasks = [asyncio.create_task(publish(topic, NewTopicMessage(message_id=each[:1], body=each))) for each in bodies]
    tasks.append(asyncio.create_task(publish("none", NewTopicMessage(message_id="M", body="hello"))))
    await asyncio.sleep(0)
    gate.open()
    answers = await asyncio.gather(gated, *tasks, return_exceptions=True)
    assert set(groups) == {5}
    assert [type(each) for each in answers[1:]] == [str, InvalidArgument, str, str, TopicNotExist]
    assert {(await subscriber.next()).body for _ in range(3)} == {"1", "2", "3"}


async def test_publishing_again_after_a_lost_answer_publishes_once(
    node: Node, topic: str, subscriber: Subscriber
) -> None:
    subscriber.status["hook"] = None
    await subscribe(node, "s", subscriber.url("hook"))
    node.database.lose_answer_of(select(deliveries))
    with suppress(OperationalError):  # another change in that commit would make it a retry at once
        await node.engine.topics.publish(topic, NewTopicMessage(message_id="M", body="hello"))
    assert node.database.has_lied
    await node.engine.topics.publish(topic, NewTopicMessage(message_id="M", body="hello"))
    push = await subscriber.next()
    assert len(left(node)) == 1
    push.answer(200)
    assert await settled(node) == {}
    assert not subscriber.has_more
