"""Queues kept by a broker: the broker confirms each message first, and the database stores none of it."""

import asyncio
import json

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from flowserver.base.errors import InvalidArgument, QueueNotExist
from flowserver.base.span_ids import SpanRef, read_traceparent
from flowserver.engine.deliveries.worker import CLAIM_MS
from flowserver.invokers import remote_destinations
from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.events import EventType
from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from flowserver.operations.subscriptions import SubscriptionAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.store.queues.message_writes import NewQueueMessage
from flowserver.tracing.otlp import SdkTracer
from tests.engine.delivering import attempted, deliver, settled
from tests.engine.nodes import running_node, take_for_dead
from tests.support.following import follow
from tests.support.nats_server import NatsServer

SEND = """
- type: task
  name: send
  resourceArn: acs:mns:::/queues/{queue}/messages
  serviceParams: {{MessageBody: $, {more}}}
  inputMappings: [{{target: n, source: $input.n}}, {{target: taskToken, source: $context.task.token}}]
  {rest}
"""


def send(queue="orders", more="", rest=""):
    return SEND.format(queue=queue, more=more, rest=rest)


async def submitted(node, times):
    """The event of that type, once it has happened this many times."""
    async for event in follow(node.operations, "f", "e"):
        times -= event.type is EventType.TASK_SUBMITTED
        if not times:
            return event
    raise AssertionError("the execution ended")


@pytest.fixture
async def broker(tmp_path):
    with NatsServer(tmp_path / "nats") as server:
        await server.add_stream("SHOP", "shop.>")
        yield server


@pytest.fixture
def queues(broker):
    return {
        "orders": f"{broker.url}/shop.orders?timeout_seconds=30",
        "brief": f"{broker.url}/shop.brief?timeout_seconds=0.3",
        "lost": f"{broker.url}?timeout_seconds=0.3",
        "elsewhere": f"{broker.url}/shop.x?stream=OTHER",
    }


@pytest.fixture
async def node(open_database, clock, queues):
    async with running_node(open_database(), clock, queues=queues) as running:
        yield running


async def test_messages_are_sent_to_the_broker(node, broker, clock):
    new = [NewQueueMessage(message_id="m1", body="値"), NewQueueMessage(message_id="m2", body="b", priority=1)]
    sent = await node.engine.queues.send("orders", new)
    assert [(each.message_id, each.enqueued_at) for each in sent] == [("m1", clock.now_ms()), ("m2", clock.now_ms())]
    assert sent[1].body_md5 == "92EB5FFEE6AE2FEC3AD71C777531578F"
    kept = await broker.messages("SHOP")
    assert [(each.subject, each.data.decode()) for each in kept] == [("shop.orders", "値"), ("shop.orders", "b")]
    assert kept[1].headers == {"Nats-Msg-Id": "m2", "Flowserver-Priority": "1"}


async def test_a_message_of_the_same_id_is_sent_once(node, broker):
    for _ in range(2):
        await node.engine.queues.send("orders", [NewQueueMessage(message_id="m1", body="a")])
    assert len(await broker.messages("SHOP")) == 1


async def test_messages_that_the_broker_rejects(node):
    with pytest.raises(QueueNotExist):
        await node.engine.queues.send("lost", [NewQueueMessage(message_id="m1", body="a")])
    with pytest.raises(InvalidArgument, match="cannot delay"):
        await node.engine.queues.send("orders", [NewQueueMessage(message_id="m1", body="a", delay_seconds=1)])


async def test_a_queue_at_a_broker_cannot_be_used_here(node, clock):
    queues = node.operations.queues
    calls = [
        queues.create("orders", QueueAttributes()),
        queues.describe("orders"),
        queues.send("orders", [OutgoingMessage(body="a")]),
        queues.receive("orders", wait_seconds=30),
        queues.delete("orders"),
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match="queue orders is kept by a broker"):
            await call
    with node.database.write() as connection, pytest.raises(InvalidArgument, match="kept by a broker"):
        node.engine.queues.send_in(connection, "orders", [], clock.now_ms())


async def test_other_queues_are_unaffected(node, broker):
    await node.operations.queues.create("bills", QueueAttributes())
    await node.operations.queues.send("bills", [OutgoingMessage(body="a")])
    assert [each.body for each in await node.operations.queues.receive("bills")] == ["a"]
    assert await broker.messages("SHOP") == []


async def test_a_step_continues_once_the_broker_has_its_message(node, broker):
    await node.create_flow("f", send(more="Priority: 3"))
    await node.start("f", "e", {"n": "値"})
    output = await node.output_of("f", "e")
    (kept,) = await broker.messages("SHOP")
    assert json.loads(kept.data)["n"] == "値"
    assert kept.headers == {"Nats-Msg-Id": output["MessageId"], "Flowserver-Priority": "3"}
    assert output.keys() == {"MessageId", "RequestId", "MessageBodyMD5"}


async def test_a_traced_message_has_the_span_of_its_attempt(open_database, clock, queues, broker):
    exporter = InMemorySpanExporter()
    tracer = SdkTracer(exporter, 10)
    async with running_node(open_database(), clock, queues=queues, tracer=tracer) as node:
        await node.create_flow("f", send())
        await node.start("f", "e", {"n": 1})
        await node.end_of("f", "e")
    tracer.close()
    (kept,) = await broker.messages("SHOP")
    (attempt,) = (span for span in exporter.get_finished_spans() if span.name == "send")
    context = attempt.get_span_context()
    assert read_traceparent(kept.headers["traceparent"]) == SpanRef(context.trace_id, context.span_id)


async def test_a_step_waits_for_the_report_of_its_messages_receiver(node, broker):
    await node.create_flow("f", send(rest="pattern: waitForCallback"))
    await node.start("f", "e", {"n": 1})
    event = await submitted(node, times=1)
    (kept,) = await broker.messages("SHOP")
    assert json.loads(event.detail)["output"]["MessageId"] == kept.headers["Nats-Msg-Id"]
    await node.operations.tasks.report_succeeded(json.loads(kept.data)["taskToken"], '{"accepted":true}')
    assert await node.output_of("f", "e") == {"accepted": True}


async def test_an_unavailable_broker_is_retried_as_the_step_says(node, broker, clock):
    broker.kill()
    policy = "retry: [{errors: [MNS.BrokerUnavailable], intervalSeconds: 60, maxAttempts: 1}]"
    await node.create_flow("f", send("brief", rest=policy))
    await node.start("f", "e", {"n": 1})
    failed = await node.reached("f", "e", EventType.TASK_FAILED)
    assert "could not be reached: Connection refused" in failed.detail
    broker.start()
    node.advance(clock, seconds=60)
    await node.output_of("f", "e")
    assert len(await broker.messages("SHOP")) == 1


async def test_a_retry_after_a_report_of_failure_is_a_new_message(node, broker, clock):
    policy = "retry: [{errors: [Busy], intervalSeconds: 60, maxAttempts: 1}]"
    await node.create_flow("f", send(rest=f"pattern: waitForCallback\n  {policy}"))
    await node.start("f", "e", {"n": 1})
    await submitted(node, times=1)
    (first,) = await broker.messages("SHOP")
    token = json.loads(first.data)["taskToken"]
    await node.operations.tasks.report_failed(token, "Busy", "no clerk is here")
    node.advance(clock, seconds=60)
    await submitted(node, times=2)
    _, second = await broker.messages("SHOP")
    assert second.data == first.data
    await node.operations.tasks.report_succeeded(token, "{}")
    assert await node.output_of("f", "e") == {}


@pytest.mark.parametrize(
    ("queue", "more", "error"),
    [
        ("lost", "", "MNS.QueueNotExist"),
        ("elsewhere", "", "MNS.BrokerRefused"),
        ("orders", "DelaySeconds: 5", "MNS.InvalidArgument"),
    ],
)
async def test_an_undeliverable_message_fails_the_step(node, broker, queue, more, error):
    await node.create_flow("f", send(queue, more))
    await node.start("f", "e", {"n": 1})
    assert await node.error_of("f", "e") == error
    assert await broker.messages("SHOP") == []


async def test_a_message_is_sent_once_though_its_sender_dies_before_the_confirmation(
    open_database, clock, broker, queues
):
    async with running_node(open_database(), clock, queues=queues, node_id="life-1") as node:
        await node.create_flow("f", send())
        await node.engine.queues.send("orders", [NewQueueMessage(message_id="m1", body="so that it is connected")])
        broker.pause()
        await node.start("f", "e", {"n": 1})
        node.database.crashed = True
        broker.resume()
        await node.database.failed()
        assert len(await broker.messages("SHOP")) == 2
    database = open_database()
    clock.advance(seconds=3)
    take_for_dead(database, "life-1")
    async with running_node(database, clock, queues=queues, node_id="life-2") as node:
        output = await node.output_of("f", "e")
    _, kept = await broker.messages("SHOP")
    assert kept.headers["Nats-Msg-Id"] == output["MessageId"]


async def test_a_delivery_waits_for_a_broker_no_longer_than_its_claim(node, broker, monkeypatch):
    assert remote_destinations.BROKER_SECONDS * 1000 < CLAIM_MS
    monkeypatch.setattr(remote_destinations, "BROKER_SECONDS", 0.05)
    broker.kill()
    await asyncio.gather(attempted(node), deliver(node, "acs:mns:::queues/orders", "1"))
    assert await settled(node) == {"1": 1}


async def test_messages_of_topics_reach_a_queue_at_a_broker(node, broker):
    await node.operations.topics.create("news", TopicAttributes())
    endpoint = SubscriptionAttributes(endpoint="acs:mns:::queues/orders", content_format=ContentFormat.SIMPLIFIED)
    await node.operations.subscriptions.subscribe("news", "clerks", endpoint)
    await node.operations.topics.publish("news", "値", "red")
    await node.operations.topics.publish("news", "second", "é")
    kept = {each.data.decode(): each.headers for each in await broker.messages("SHOP", count=2)}
    assert kept["値"]["Flowserver-Tag"] == "red"
    assert kept["second"].keys() == {"Nats-Msg-Id"}
    assert await settled(node) == {}
