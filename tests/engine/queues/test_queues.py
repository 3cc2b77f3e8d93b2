"""Queues of one node: a sent message is received by one receiver, and long polls are served at once."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import OperationalError

from flowserver.base.errors import InvalidArgument, QueueNotExist, ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.concurrency.coalescer import GROUP_MAX
from flowserver.operations.queues import QueueAttributes
from flowserver.store.queues.message_writes import NewQueueMessage, QueueWrite, apply_writes
from flowserver.store.queues.messages import QueueMessage, Receipt, scan_queue
from flowserver.store.schema.queue_tables import queue_messages
from tests.engine.held_threads import Gate
from tests.engine.nodes import FragileDatabase, Node, running_node
from tests.support.clock import ManualClock

LONG_SECONDS = 20.0
"""Only a test that fails waits this long."""


@pytest.fixture(autouse=True)
async def queue(node: Node) -> None:
    """Every test's node has the queue `q`."""
    await make_queue(node)


async def make_queue(node: Node, name: str = "q", polling_seconds: int = 0) -> None:
    attributes = QueueAttributes(visibility_seconds=30, polling_seconds=polling_seconds)
    assert await node.operations.queues.create(name, attributes)


async def send(node: Node, *ids: str, queue: str = "q", delay_seconds: int | None = None) -> None:
    messages = [NewQueueMessage(message_id=id, body=f"body of {id}", delay_seconds=delay_seconds) for id in ids]
    sent = await node.engine.queues.send(queue, messages)
    assert [message.message_id for message in sent] == list(ids)


async def receive(node: Node, count: int = 1, seconds: float | None = 0, queue: str = "q") -> list[str]:
    return [message.message_id for message in await node.engine.queues.receive(queue, count, seconds)]


def poll(node: Node, count: int = 1, queue: str = "q") -> asyncio.Task[list[str]]:
    return asyncio.create_task(receive(node, count, LONG_SECONDS, queue))


async def in_line(node: Node, polls: int) -> None:
    """Return when this many polls wait after an empty read."""
    while node.engine.queues.waiting < polls:
        await node.engine.committer.write(lambda _: None)  # they may be trying to receive at once
    for _ in range(3):  # their read was requested before, or at the latest while this waits for the first
        await node.engine.reader.ask(lambda _: None)


async def asked() -> None:
    """Return once every poll that was begun has submitted its query."""
    for _ in range(5):
        await asyncio.sleep(0)


def receipt_of(message: QueueMessage) -> Receipt:
    assert message.receipt is not None
    return message.message_id, message.receipt


@asynccontextmanager
async def busy_writer(node: Node) -> AsyncIterator[None]:
    """Occupy the writer until the block ends, so that all requests within it wait."""
    gate = Gate()
    gated = asyncio.create_task(node.engine.committer.write(gate))
    await gate.reached.wait()
    yield
    await asyncio.sleep(0)
    gate.open()
    await gated


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of writes in each transaction that wrote to queues."""
    sizes: list[int] = []

    def counted(connection: Connection, writes: Sequence[QueueWrite], now_ms: int) -> list[Any]:
        sizes.append(len(writes))
        return apply_writes(connection, writes, now_ms)

    monkeypatch.setattr("flowserver.engine.queues.queues.apply_writes", counted)
    return sizes


async def test_a_sent_message_is_received_once_and_deleted(node: Node) -> None:
    await send(node, "A", "B", "C")
    first = await node.engine.queues.receive("q", 2, 0)
    assert [(message.message_id, message.body) for message in first] == [("A", "body of A"), ("B", "body of B")]
    assert await receive(node, 16) == ["C"]
    assert await receive(node, 16) == []
    assert await node.engine.queues.delete("q", [*map(receipt_of, first), ("C", "bad")]) == [True, True, False]


async def test_a_message_that_is_not_deleted_becomes_visible_again(node: Node, clock: ManualClock) -> None:
    await send(node, "A")
    (first,) = await node.engine.queues.receive("q", 1, 0)
    clock.advance(ms=29_999)
    assert await receive(node) == []
    clock.advance(ms=1)
    (second,) = await node.engine.queues.receive("q", 1, 0)
    assert (second.message_id, second.dequeue_count) == ("A", 2)
    assert await node.engine.queues.delete("q", [receipt_of(first)]) == [False]
    assert await node.engine.queues.delete("q", [receipt_of(second)]) == [True]


async def test_visibility_can_be_prolonged_and_ended(node: Node, clock: ManualClock) -> None:
    await send(node, "A")
    (message,) = await node.engine.queues.receive("q", 1, 0)
    changed = await node.engine.queues.hide("q", receipt_of(message), 60)
    assert changed is not None
    receipt, until = changed
    assert until == clock.now_ms() + 60_000
    assert await node.engine.queues.hide("q", receipt_of(message), 60) is None
    clock.advance(seconds=59)
    assert await receive(node) == []
    assert await node.engine.queues.hide("q", receipt, 0) is not None
    assert await receive(node) == ["A"]


async def test_a_send_serves_a_waiting_poll_in_its_own_transaction(node: Node, groups: list[int]) -> None:
    polls = [poll(node) for _ in range(3)]
    await in_line(node, 3)
    await send(node, "A", "B")
    assert await asyncio.gather(*polls[:2]) == [["A"], ["B"]]
    assert groups == [3]
    await send(node, "C")
    assert await polls[2] == ["C"]


async def test_polls_are_served_in_order_of_arrival(node: Node) -> None:
    polls = [poll(node) for _ in range(5)]
    await in_line(node, 5)
    for name in "ABCDE":
        await send(node, name)
    assert await asyncio.gather(*polls) == [["A"], ["B"], ["C"], ["D"], ["E"]]


async def test_a_poll_for_many_takes_the_messages_available(node: Node) -> None:
    waiting = poll(node, 16)
    await in_line(node, 1)
    await send(node, "A", "B", "C")
    assert await waiting == ["A", "B", "C"]


async def test_a_poll_ends_empty_when_its_time_is_over(node: Node) -> None:
    assert await receive(node, 1, 0.01) == []
    assert node.engine.queues.waiting == 0
    await send(node, "A")
    assert await receive(node) == ["A"]


async def test_a_poll_without_a_wait_time_uses_that_of_the_queue(node: Node) -> None:
    await make_queue(node, "patient", polling_seconds=20)
    waiting = asyncio.create_task(receive(node, 1, None, "patient"))
    await in_line(node, 1)
    assert await receive(node, 1, 0, "patient") == []
    await send(node, "A", queue="patient")
    assert await waiting == ["A"]
    assert await receive(node, 1, None) == []


async def test_a_poll_gets_reappearing_and_delayed_messages(node: Node, clock: ManualClock) -> None:
    await send(node, "A")
    await send(node, "late", delay_seconds=10)
    assert await receive(node) == ["A"]
    polls = [poll(node), poll(node)]
    await in_line(node, 2)
    clock.advance(seconds=10)
    node.engine.queues.scan_soon("q")  # as the long polls' own timer does with a real clock
    assert await polls[0] == ["late"]
    clock.advance(seconds=20)
    node.engine.queues.scan_soon("q")
    assert await polls[1] == ["A"]


async def test_long_polls_wake_by_themselves_when_a_message_is_due(node: Node, clock: ManualClock) -> None:
    await send(node, "A", delay_seconds=1)
    clock.advance(ms=950)
    waiting = poll(node)
    await in_line(node, 1)
    clock.advance(ms=50)
    assert await waiting == ["A"]


async def test_a_cancelled_receiver_takes_no_message(node: Node) -> None:
    gone, stays = poll(node), poll(node)
    await in_line(node, 2)
    gone.cancel()
    await asyncio.wait([gone])
    await send(node, "A")
    assert await stays == ["A"]
    assert node.engine.queues.waiting == 0


@pytest.mark.parametrize("is_waiting", [True, False], ids=["from the line", "at once"])
async def test_a_message_on_its_way_to_a_cancelled_receiver_is_put_back(node: Node, is_waiting: bool) -> None:
    if is_waiting:
        taking = poll(node)
        await in_line(node, 1)
        async with busy_writer(node):
            sending = asyncio.create_task(send(node, "A"))
            await asyncio.sleep(0)
            taking.cancel()
        await sending
    else:
        await send(node, "A")
        async with busy_writer(node):
            node.engine.queues._flowing.add("q")
            taking = asyncio.create_task(receive(node))
            await asyncio.sleep(0)
            taking.cancel()
    assert await receive(node, 1, LONG_SECONDS) == ["A"], "before its visibility time-out"


async def test_waiting_uses_no_thread_and_no_connection(node: Node) -> None:
    before = threading.active_count()
    polls = [poll(node) for _ in range(300)]
    await in_line(node, 300)
    assert threading.active_count() < before + 10, "the node's own threads may start meanwhile"
    assert node.engine.committer.pending < 10, "the node's own writes may wait"
    assert await receive(node) == [], "others are answered meanwhile"
    node.engine.queues.release()
    assert await asyncio.gather(*polls) == [[]] * 300
    assert await receive(node, 1, LONG_SECONDS) == [], "no poll waits any longer"


async def test_an_empty_receive_writes_nothing(node: Node, groups: list[int]) -> None:
    assert await receive(node) == []
    assert await receive(node, 16, 0.01) == []
    assert groups == []


async def test_a_receive_after_a_send_sees_it_though_a_shared_read_is_under_way(node: Node) -> None:
    first, second = Gate(), Gate()

    def look_first(connection: Connection) -> str:
        scan_queue(connection, "q", 1, 0)  # from here on the transaction sees the earlier state
        return second(connection)

    async with asyncio.TaskGroup() as asking:
        asking.create_task(node.engine.reader.ask(first))
        await first.reached.wait()
        asking.create_task(node.engine.reader.ask(look_first))
        before = asking.create_task(receive(node))
        await asked()
        first.open()
        await second.reached.wait()
        await send(node, "A")
        after = asking.create_task(receive(node))
        await asked()
        second.open()
    assert before.result() + after.result() == ["A"]


async def test_concurrent_operations_share_transactions(node: Node, groups: list[int]) -> None:
    await send(node, *(f"M{n:02}" for n in range(20)))
    held = await node.engine.queues.receive("q", 10, 0)
    groups.clear()
    async with busy_writer(node):
        sends = [asyncio.create_task(send(node, f"N{n}")) for n in range(10)]
        takes = [asyncio.create_task(receive(node, 2)) for _ in range(5)]
        deletes = [asyncio.create_task(node.engine.queues.delete("q", [receipt_of(each)])) for each in held]
    assert await asyncio.gather(*deletes) == [[True]] * 10
    taken = [each for some in await asyncio.gather(*takes) for each in some]
    assert sorted(taken) == [f"M{n}" for n in range(10, 20)]
    await asyncio.gather(*sends)
    assert groups == [25]


async def test_a_queue_that_does_not_exist_is_reported(node: Node) -> None:
    queues = node.engine.queues
    for asked in (
        send(node, "A", queue="none"),
        receive(node, queue="none"),
        receive(node, 1, LONG_SECONDS, "none"),
        queues.delete("none", [("A", "r")]),
        queues.hide("none", ("A", "r"), 1),
    ):
        with pytest.raises(QueueNotExist, match="queue none does not exist"):
            await asked


async def test_a_poll_ends_when_its_queue_is_deleted(node: Node) -> None:
    polls = [poll(node), poll(node)]
    await in_line(node, 2)
    await send(node, "A", delay_seconds=50)
    await node.operations.queues.delete("q")
    for each in polls:
        with pytest.raises(QueueNotExist):
            await each
    await make_queue(node)
    assert (await node.operations.queues.describe("q"))[1].delayed == 0


async def test_a_deleted_queue_is_not_polled_any_more(node: Node, groups: list[int]) -> None:
    await send(node, "A")
    assert await receive(node) == ["A"]
    await node.operations.queues.delete("q")
    for _ in range(3):
        with pytest.raises(QueueNotExist):
            await receive(node)
    assert groups == [1, 1, 1]  # the send, the receive, and one more that did not know of the deletion


async def test_a_request_for_many_messages_does_not_share_a_transaction_with_all_others(
    node: Node, groups: list[int]
) -> None:
    async with busy_writer(node):
        takes = [asyncio.create_task(node.engine.queues._take("q", 16, by_caller=True)) for _ in range(100)]
        await asyncio.sleep(0)
    await asyncio.gather(*takes)
    assert sum(groups) == 100
    assert max(groups) <= GROUP_MAX // 16 + 1


async def test_a_body_too_long_for_the_queue_is_refused_alone(node: Node) -> None:
    await node.operations.queues.set_attributes("q", QueueAttributes(message_bytes_max=1024))
    async with busy_writer(node):
        good = asyncio.create_task(send(node, "A"))
        long = [NewQueueMessage(message_id=id, body="ü" * size) for id, size in (("B", 1), ("C", 513))]
        bad = asyncio.create_task(node.engine.queues.send("q", long))
    await good
    with pytest.raises(InvalidArgument, match="1026 bytes"):
        await bad
    assert await receive(node, 16) == ["A"]


async def test_a_message_is_part_of_another_change(node: Node) -> None:
    waiting = poll(node)
    await in_line(node, 1)
    queues, new = node.engine.queues, NewQueueMessage(message_id="A", body="b")

    def change(connection: Connection, queue: str) -> list[QueueMessage]:
        return queues.send_in(connection, queue, [new], node.engine.clock.now_ms())

    with pytest.raises(QueueNotExist):
        await node.engine.committer.write(lambda connection: change(connection, "none"))
    (sent,) = await node.engine.committer.write(lambda connection: change(connection, "q"))
    assert sent.body_md5 == "92EB5FFEE6AE2FEC3AD71C777531578F"
    queues.note_sent("q", 1)
    assert await waiting == ["A"]


async def test_while_the_database_is_down_callers_get_errors_and_nothing_is_lost(node: Node) -> None:
    await send(node, "A")
    (message,) = await node.engine.queues.receive("q", 1, 0)
    waiting = poll(node)
    await in_line(node, 1)
    node.database.broken = True
    with pytest.raises(OperationalError):
        await send(node, "B")
    with pytest.raises(OperationalError):
        await node.engine.queues.delete("q", [receipt_of(message)])
    with pytest.raises(OperationalError):
        await waiting
    node.database.broken = False
    assert await node.engine.queues.delete("q", [receipt_of(message)]) == [True]
    await send(node, "B")
    assert await receive(node, 16) == ["B"]


async def test_a_poll_continues_to_wait_when_a_read_fails(node: Node) -> None:
    waiting = poll(node)
    await in_line(node, 1)
    node.database.unreadable = True
    node.engine.queues.scan_soon("q")
    await node.database.failed()
    node.database.unreadable = False
    await send(node, "A")
    assert await waiting == ["A"]


async def test_a_send_whose_answer_was_lost_can_be_repeated(node: Node) -> None:
    node.database.lose_answer_of(select(queue_messages))
    with suppress(OperationalError):  # another change in that commit would make it a retry at once
        await send(node, "A")
    assert node.database.has_lied
    await send(node, "A")
    assert await receive(node, 16) == ["A"]


async def test_expired_messages_are_deleted_a_few_at_a_time(
    node: Node, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.engine.queues.expiry.DELETED_AT_ONCE", 2)
    await node.operations.queues.set_attributes("q", QueueAttributes(retention_seconds=60))
    await send(node, "A", "B", "C", "D", "E")
    clock.advance(seconds=59)
    await send(node, "F")
    assert await node.engine.expiry.run_once() == 0
    clock.advance(seconds=1)
    assert await node.engine.expiry.run_once() == 5
    assert await node.engine.expiry.run_once() == 0
    assert await receive(node, 16) == ["F"]


class TestLimits:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(queue_polls_max=2, pending_messages_max=3)

    async def test_polls_past_the_limit_are_answered_at_once(self, node: Node) -> None:
        polls = [poll(node), poll(node)]
        await in_line(node, 2)
        assert await receive(node, 1, LONG_SECONDS) == []
        await send(node, "A", "B")
        assert await asyncio.gather(*polls) == [["A"], ["B"]]

    async def test_polls_past_the_limit_get_the_messages_available(self, node: Node) -> None:
        await make_queue(node, "busy")
        polls = [poll(node), poll(node)]
        await in_line(node, 2)
        await send(node, "A", queue="busy")
        assert await receive(node, 1, LONG_SECONDS, "busy") == ["A"]
        for each in polls:
            each.cancel()

    async def test_operations_past_the_limit_are_refused(self, node: Node) -> None:
        new = [NewQueueMessage(message_id="A", body="b")]
        async with busy_writer(node):
            sends = [asyncio.create_task(node.engine.queues.send("q", new, by_caller=True)) for _ in range(5)]
        answers = await asyncio.gather(*sends, return_exceptions=True)
        assert [type(answer) for answer in answers] == [list] * 3 + [ResourceThrottled] * 2


async def test_another_node_serves_the_polls_that_wait_there(postgres_url_nodes: tuple[Node, Node]) -> None:
    one, two = postgres_url_nodes
    await make_queue(one, "shared")
    waiting = poll(two, queue="shared")
    await in_line(two, 1)
    await send(one, "A", queue="shared")
    assert await waiting == ["A"]
    waiting = poll(two, queue="shared")
    await in_line(two, 1)
    await one.operations.queues.delete("shared")
    with pytest.raises(QueueNotExist):
        await waiting


@pytest.fixture
async def postgres_url_nodes(migrated_postgres_url: str, clock: ManualClock) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes of one database that know of each other."""
    first, second = FragileDatabase(migrated_postgres_url), FragileDatabase(migrated_postgres_url)
    async with running_node(first, clock, node_id="one") as one, running_node(second, clock, node_id="two") as two:
        while one.engine.membership.share.nodes < 2 or two.engine.membership.share.nodes < 2:
            await asyncio.to_thread(one.database.run_read, lambda _: None)
        yield one, two
    first.close()
    second.close()
