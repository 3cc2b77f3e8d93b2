"""A delivery is retried until it succeeds or is given up."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from sqlalchemy import Connection, func, select, update

from flowserver.base.errors import FlowNotExists, FlowServerError
from flowserver.base.limits import Limits
from flowserver.engine.deliveries import worker
from flowserver.engine.deliveries.worker import CLAIM_MS
from flowserver.invokers import remote_destinations
from flowserver.invokers.calls import Failed
from flowserver.invokers.web_requests import WebRequest
from flowserver.machine.deliveries.destinations import QueueAddress
from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.store.queues.deliveries import Delivery
from flowserver.store.schema.queue_tables import deliveries
from flowserver.store.schema.tables import secrets
from tests.engine.delivering import advance, attempted, deliver, settled
from tests.engine.nodes import PATIENCE_SECONDS, FragileDatabase, Node, running_node
from tests.engine.subscribers import Subscriber
from tests.support.clock import ManualClock

QUEUE = "acs:mns:::queues/q"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A push that is slow on a busy machine would be tried again at an instant that the test.s clock never reaches."""
    monkeypatch.setattr(remote_destinations, "WEB_SECONDS", PATIENCE_SECONDS * 3.0)


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    server = Subscriber()
    await server.start()
    yield server
    await server.stop()


async def test_an_endpoint_receives_the_format_of_its_subscription(node: Node, subscriber: Subscriber) -> None:
    url = subscriber.url("hook?key=1")
    await deliver(node, url, "1", topic="news", subscription="s", tag="red", content_format=ContentFormat.SIMPLIFIED)
    push = await subscriber.next()
    assert (push.path, push.body) == ("hook", "body 1")
    assert push.headers["x-mns-message-id"] == "1"
    assert push.headers["x-mns-message-tag"] == "red"
    await deliver(node, url, "2", topic="news", subscription="s", content_format=ContentFormat.XML)
    push = await subscriber.next()
    assert push.headers["Content-Type"] == "text/xml;charset=utf-8"
    assert "<Message>body 2</Message>" in push.body
    assert await settled(node) == {}


async def test_a_request_that_the_server_could_not_send_is_no_attempt(
    node: Node, subscriber: Subscriber, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ran out of descriptors more often than the subscription's strategy would retry."""
    out = Failed("FC.ServerError", "the server has no descriptor left", is_own=True)

    async def send_nothing(_: WebRequest) -> Failed:
        return out

    with monkeypatch.context() as patched:
        patched.setattr(node.engine.invoker, "send", send_nothing)
        for _ in range(5):
            ended = asyncio.create_task(attempted(node))
            await asyncio.sleep(0)
            if not (await settled(node)):
                await deliver(node, subscriber.url("hook"), "1", strategy=Strategy.BACKOFF, topic="n", subscription="s")
            await ended
            assert await settled(node) == {"1": 0}
            assert not node.engine.deliveries._targets.failing
            advance(node, clock, 1.1)
    advance(node, clock, 1.1)
    assert (await subscriber.next()).body == "body 1"
    assert await settled(node) == {}


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_the_backoff_strategy_gives_up_after_three_retries(
    node: Node, subscriber: Subscriber, clock: ManualClock, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    subscriber.status["hook"] = status
    await deliver(node, subscriber.url("hook?secret"), "1", strategy=Strategy.BACKOFF, topic="news", subscription="s")
    for attempt in (1, 2, 3):
        await subscriber.next()
        assert await settled(node) == {"1": attempt}
        advance(node, clock, 9.9)
        await asyncio.sleep(0)
        assert not subscriber.has_more
        advance(node, clock, 10.1)
    await subscriber.next()
    assert await settled(node) == {}
    assert "message 1 of topic news for s is given up after 4 attempts" in caplog.text
    assert "secret" not in caplog.text


async def test_a_successful_retry_is_the_last(node: Node, subscriber: Subscriber, clock: ManualClock) -> None:
    subscriber.status["hook"] = 503
    await deliver(node, subscriber.url("hook"), "1")
    await subscriber.next()
    await settled(node)
    subscriber.status["hook"] = 204
    advance(node, clock, 1)
    await subscriber.next()
    assert await settled(node) == {}


async def test_an_endpoint_that_does_not_answer_times_out(
    node: Node, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_destinations, "WEB_SECONDS", 1.0)
    subscriber.status["hook"] = None
    await deliver(node, subscriber.url("hook"), "1")
    await (await subscriber.next()).gone.wait()
    assert await settled(node) == {"1": 1}


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest", "http://[::]:99999/", "mail:a@b", QUEUE])
async def test_a_delivery_to_an_unreachable_endpoint_is_postponed(node: Node, target: str) -> None:
    await asyncio.gather(attempted(node), deliver(node, target, "1"))
    assert await settled(node) == {"1": 1}


@pytest.mark.parametrize("limits", [Limits(deliveries_in_flight_max=16)])
async def test_a_slow_endpoint_delays_no_other(node: Node, subscriber: Subscriber) -> None:
    subscriber.status["slow"] = None
    await deliver(node, subscriber.url("slow"), *(f"slow-{number:02}" for number in range(40)))
    held = [await subscriber.next() for _ in range(2)]
    await deliver(node, subscriber.url("quick"), *(f"quick-{number:02}" for number in range(40)))
    quick = [await subscriber.next() for _ in range(40)]
    assert {push.path for push in quick} == {"quick"}
    subscriber.status["slow"] = 200
    for push in held:
        push.answer(200)
    for _ in range(38):
        await subscriber.next()
    assert await settled(node) == {}


@pytest.mark.parametrize("limits", [Limits(deliveries_in_flight_max=16)])
async def test_any_number_of_failing_endpoints_leaves_slots_to_others(
    node: Node, subscriber: Subscriber, clock: ManualClock
) -> None:
    dead = [f"dead-{number:02}" for number in range(12)]
    subscriber.status.update(dict.fromkeys(dead, 500))
    for path in dead:
        await deliver(node, subscriber.url(path), *(f"{path}/{number}" for number in range(3)))
    for _ in range(36):
        await subscriber.next()
    await settled(node)
    subscriber.status.update(dict.fromkeys(dead, None))
    advance(node, clock, 1)
    held = [await subscriber.next() for _ in range(8)]
    await deliver(node, subscriber.url("quick"), *(f"quick-{number}" for number in range(5)))
    assert {(await subscriber.next()).path for _ in range(5)} == {"quick"}
    for path in dead:
        subscriber.status[path] = 200
    for push in held:
        push.answer(200)
    for _ in range(36 - 8):
        await subscriber.next()
    assert await settled(node) == {}


async def test_many_deliveries_arrive_once_each(node: Node, subscriber: Subscriber) -> None:
    ids = [f"{number:03}" for number in range(300)]
    await deliver(node, subscriber.url("hook"), *ids)
    pushes = [await subscriber.next() for _ in ids]
    assert sorted(push.headers["x-mns-message-id"] for push in pushes) == ids
    assert await settled(node) == {}
    assert not subscriber.has_more


async def test_the_next_server_makes_the_deliveries_that_a_crash_left(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, subscriber: Subscriber
) -> None:
    subscriber.status["hook"] = None
    database = open_database()
    async with running_node(database, clock) as node:
        await deliver(node, subscriber.url("hook"), "1")
        await subscriber.next()
        database.crashed = True
    subscriber.status["hook"] = 200
    clock.advance(ms=CLAIM_MS)
    async with running_node(open_database(), clock, node_id="node-2") as node:
        assert (await subscriber.next()).body == "body 1"
        assert await settled(node) == {}


async def test_a_success_is_recorded_when_the_database_is_back(
    node: Node, subscriber: Subscriber, clock: ManualClock
) -> None:
    subscriber.status["hook"] = None
    await deliver(node, subscriber.url("hook"), "1")
    push = await subscriber.next()
    node.database.broken = True
    push.answer(200)
    await node.database.failed()
    node.database.broken = False
    assert await settled(node) == {}
    assert not subscriber.has_more


async def test_a_failing_database_only_delays_deliveries(node: Node, subscriber: Subscriber) -> None:
    await deliver(node, subscriber.url("hook"), "1")
    await subscriber.next()
    node.database.broken = True
    node.engine.deliveries.note_due()
    await node.database.failed()
    node.database.broken = False
    await deliver(node, subscriber.url("hook"), "2")
    assert (await subscriber.next()).body == "body 2"


class Receiver:
    """A destination on this server that stores each delivery as a row, and refuses as often as `errors` says."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.handed_in: list[str] = []
        self.came = asyncio.Event()

    def __call__(self, connection: Connection, destination: QueueAddress, delivery: Delivery) -> Callable[[], None]:
        assert destination == QueueAddress("q")
        connection.execute(secrets.insert().values(name=f"in {delivery.delivery_id}", value=delivery.body))
        if self.errors:
            raise self.errors.pop()
        return lambda: self._note(delivery.delivery_id)

    def _note(self, delivery_id: str) -> None:
        self.handed_in.append(delivery_id)
        self.came.set()


def rows_in(node: Node) -> int:
    with node.database.read() as connection:
        handed_in = select(func.count()).select_from(secrets).where(secrets.c.name.startswith("in "))
        return int(connection.execute(handed_in).scalar_one())


async def test_a_local_destination_gets_it_in_the_commit_that_deletes_it(node: Node) -> None:
    receiver = Receiver()
    node.engine.deliveries.open(QueueAddress, receiver)
    await asyncio.gather(attempted(node, 2), deliver(node, QUEUE, "1", "2"))
    assert rows_in(node) == 2
    assert await settled(node) == {}
    assert sorted(receiver.handed_in) == ["1", "2"]


async def test_a_commit_whose_answer_is_lost_delivers_once(node: Node, clock: ManualClock) -> None:
    receiver = Receiver()
    node.engine.deliveries.open(QueueAddress, receiver)
    node.database.lose_answer_of(select(secrets).where(secrets.c.name == "in 1"))
    await asyncio.gather(attempted(node), deliver(node, QUEUE, "1"))
    assert await settled(node) == {}
    assert node.database.has_lied
    assert rows_in(node) == 1


@pytest.mark.parametrize("error", [FlowNotExists("none"), FlowServerError("a bug"), RuntimeError("a bug")])
async def test_a_destination_that_refuses_is_retried(node: Node, clock: ManualClock, error: Exception) -> None:
    receiver = Receiver(error)
    node.engine.deliveries.open(QueueAddress, receiver)
    await asyncio.gather(attempted(node), deliver(node, QUEUE, "1"))
    assert await settled(node) == {"1": 1}
    assert rows_in(node) == 0
    advance(node, clock, 1)
    await receiver.came.wait()
    assert await settled(node) == {}
    assert rows_in(node) == 1


async def test_the_end_of_a_delivery_is_recorded_with_its_invocation(
    node: Node, subscriber: Subscriber, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, str]] = []
    monkeypatch.setattr(worker, "set_destination_status", lambda _, key, status: noted.append((key, status)))
    node.engine.deliveries.open(QueueAddress, Receiver())
    subscriber.status["bad"] = 500
    bad = deliver(node, subscriber.url("bad"), "1", invocation_key="bad", strategy=Strategy.BACKOFF)
    await asyncio.gather(attempted(node), bad)
    for _ in range(3):
        advance(node, clock, 20)
        await attempted(node)
    good = deliver(node, subscriber.url("good"), "2", invocation_key="good")
    here = deliver(node, QUEUE, "3", invocation_key="here")
    await asyncio.gather(attempted(node, 3), good, here, deliver(node, QUEUE, "4", topic="news"))
    assert sorted(noted) == [("bad", "Failed"), ("good", "Succeeded"), ("here", "Succeeded")]


async def test_a_damaged_row_delays_no_other(node: Node, subscriber: Subscriber) -> None:
    subscriber.status["hook"] = 500
    await deliver(node, subscriber.url("hook"), "1")
    await subscriber.next()
    await settled(node)
    with node.database.write() as connection:
        connection.execute(update(deliveries).values(strategy="NONE", wake_at=1))
    await deliver(node, subscriber.url("other"), "2")
    assert (await subscriber.next()).path == "other"
    assert set(await settled(node)) == {"1"}


async def test_nodes_share_the_deliveries(
    migrated_postgres_url: str, clock: ManualClock, subscriber: Subscriber
) -> None:
    first, second = FragileDatabase(migrated_postgres_url), FragileDatabase(migrated_postgres_url)
    ids = [f"{number:03}" for number in range(200)]
    async with running_node(first, clock) as node, running_node(second, clock, node_id="node-2") as other:
        await deliver(node, subscriber.url("hook"), *ids)
        other.engine.deliveries.note_due()
        pushes = [await subscriber.next() for _ in ids]
        assert sorted(push.headers["x-mns-message-id"] for push in pushes) == ids
        await settled(other)
        assert await settled(node) == {}
    for database in (first, second):
        database.close()
    assert not subscriber.has_more
