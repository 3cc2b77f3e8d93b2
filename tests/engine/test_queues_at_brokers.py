"""Queues that a broker keeps: what is sent there is confirmed first, and nothing of it is in the database."""

import pytest

from flowserver.base.errors import InvalidArgument, QueueNotExist
from flowserver.engine.queue_work import NewQueueMessage
from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from tests.engine.nodes import running_node
from tests.support.nats_server import NatsServer


@pytest.fixture
async def broker(tmp_path):
    with NatsServer(tmp_path / "nats") as server:
        await server.add_stream("SHOP", "shop.>")
        yield server


@pytest.fixture
async def node(open_database, clock, broker):
    queues = {"orders": f"{broker.url}/shop.orders", "lost": f"{broker.url}?timeout_seconds=0.3"}
    async with running_node(open_database(), clock, queues=queues) as running:
        yield running


async def test_messages_go_to_the_broker(node, broker, clock):
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


async def test_what_the_broker_does_not_take(node):
    with pytest.raises(QueueNotExist):
        await node.engine.queues.send("lost", [NewQueueMessage(message_id="m1", body="a")])
    with pytest.raises(InvalidArgument, match="cannot delay"):
        await node.engine.queues.send("orders", [NewQueueMessage(message_id="m1", body="a", delay_seconds=1)])


async def test_such_a_queue_cannot_be_used_here(node, clock):
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


async def test_other_queues_are_as_ever(node, broker):
    await node.operations.queues.create("bills", QueueAttributes())
    await node.operations.queues.send("bills", [OutgoingMessage(body="a")])
    assert [each.body for each in await node.operations.queues.receive("bills")] == ["a"]
    assert await broker.messages("SHOP") == []
