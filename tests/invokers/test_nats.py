"""Messages for a broker, against a real NATS server: confirmed, stored once, retried, or refused with a reason."""

import asyncio
import socket
from types import SimpleNamespace

import pytest

from flowserver.base.errors import QueueNotExist
from flowserver.invokers import brokers
from flowserver.invokers import nats as client
from flowserver.invokers.broker_clients import Outlets
from flowserver.invokers.brokers import BrokerMessage, BrokerRefused, BrokerUnavailable, read_outlets
from tests.support.nats_server import NatsServer
from tests.support.ports import free_port


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """The server, too, may be held up by other programs."""
    monkeypatch.setattr(client, "CONNECT_SECONDS", 60)
    monkeypatch.setattr(brokers, "TIMEOUT_SECONDS_DEFAULT", 60)


@pytest.fixture
def first_mishap_is_last(monkeypatch):
    """The time of a send is over after its first mishap, however late that comes."""

    async def over(_seconds):
        raise TimeoutError

    monkeypatch.setattr(client, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": over}))


@pytest.fixture
def server(tmp_path):
    with NatsServer(tmp_path) as running:
        yield running


@pytest.fixture
async def outlets():
    """Makes outlets and closes them after the test: `outlets(orders="nats://…")`."""
    made = []

    def make(**queues):
        made.append(Outlets(read_outlets(queues)))
        return made[-1]

    yield make
    for each in made:
        await each.close()


def message(body=b"{}", message_id="m1", **headers):
    return BrokerMessage(body, message_id, headers)


async def test_a_confirmed_message_is_stored(server, outlets):
    await server.add_stream("ORDERS", "orders")
    await outlets(orders=server.url).send("orders", message('{"k":"值"}'.encode(), Priority="8"))
    (kept,) = await server.messages("ORDERS")
    assert kept.subject == "orders"
    assert kept.data.decode() == '{"k":"值"}'
    assert kept.headers == {"Nats-Msg-Id": "m1", "Priority": "8"}


async def test_the_url_names_subject_and_stream(server, outlets):
    await server.add_stream("SHOP", "shop.>")
    sending = outlets(orders=f"{server.url}/shop.orders?stream=SHOP", bills=f"{server.url}/shop.bills?stream=BILLS")
    await sending.send("orders", message())
    with pytest.raises(BrokerRefused, match="expected stream does not match"):
        await sending.send("bills", message())
    assert [kept.subject for kept in await server.messages("SHOP")] == ["shop.orders"]


async def test_a_repeated_message_is_stored_once(server, outlets):
    await server.add_stream("ORDERS", "orders")
    sending = outlets(orders=server.url)
    for _ in range(3):
        await sending.send("orders", message(b"first"))
    await sending.send("orders", message(b"second", "m2"))
    assert [kept.data for kept in await server.messages("ORDERS")] == [b"first", b"second"]


async def test_all_share_one_connection(server, outlets):
    await server.add_stream("ORDERS", "orders", "bills")
    sending = outlets(orders=server.url, bills=server.url)
    await asyncio.gather(
        *(sending.send(queue, message(message_id=f"{queue}{n}")) for queue in ("orders", "bills") for n in range(50))
    )
    assert len(await server.messages("ORDERS")) == 100
    (broker,) = sending._brokers.values()
    assert broker._connection.done()


@pytest.mark.usefixtures("first_mishap_is_last")
async def test_no_stream_accepts_it(server, outlets):
    with pytest.raises(QueueNotExist, match="no stream of the NATS server takes the subject orders"):
        await outlets(orders=server.url).send("orders", message())


async def test_a_stream_created_in_time(server, outlets, monkeypatch):
    tried_again = asyncio.Event()
    explained = client.NatsBroker._explained

    def note(broker, error, outlet):
        tried_again.set()
        return explained(broker, error, outlet)

    monkeypatch.setattr(client.NatsBroker, "_explained", note)
    sending = asyncio.create_task(outlets(orders=server.url).send("orders", message()))
    await tried_again.wait()
    await server.add_stream("ORDERS", "orders")
    await sending
    assert len(await server.messages("ORDERS")) == 1


@pytest.mark.usefixtures("first_mishap_is_last")
async def test_a_server_that_is_down(outlets):
    sending = outlets(orders=f"nats://user:secret@127.0.0.1:{free_port()}")
    with pytest.raises(BrokerUnavailable) as raised:
        await sending.send("orders", message())
    assert raised.value.message == "the NATS server could not be reached: Connection refused"


async def test_a_server_that_returns_stores_messages_sent_meanwhile(server, outlets):
    await server.add_stream("ORDERS", "orders")
    sending = outlets(orders=server.url)
    await sending.send("orders", message(b"before", "m1"))
    server.kill()
    later = asyncio.create_task(sending.send("orders", message(b"while away", "m2")))
    await asyncio.to_thread(server.start)
    await later
    assert [kept.data for kept in await server.messages("ORDERS")] == [b"before", b"while away"]


async def test_a_server_that_dies_before_it_confirms(server, outlets):
    """Its messages may have been lost or stored: they are sent again, and each is stored once."""
    await server.add_stream("ORDERS", "orders")
    sending = outlets(orders=server.url)
    await sending.send("orders", message(message_id="m0"))
    server.pause()
    unconfirmed = [asyncio.create_task(sending.send("orders", message(message_id=f"m{n}"))) for n in range(1, 9)]
    done, _ = await asyncio.wait(unconfirmed, timeout=0.1)
    assert not done
    server.kill()
    await asyncio.to_thread(server.start)
    await asyncio.gather(*unconfirmed)
    kept = [each.headers["Nats-Msg-Id"] for each in await server.messages("ORDERS")]
    assert sorted(kept) == [f"m{n}" for n in range(9)]


async def test_a_server_that_does_not_answer(server, outlets):
    await server.add_stream("ORDERS", "orders")
    sending = outlets(orders=f"{server.url}?timeout_seconds=0.3", patient=f"{server.url}/orders")
    await sending.send("patient", message())
    server.pause()
    with pytest.raises(BrokerUnavailable, match=r"did not confirm the message in 0\.3 s"):
        await sending.send("orders", message(message_id="m2"))


async def test_a_host_that_sends_nothing(outlets):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sending = outlets(orders=f"nats://127.0.0.1:{silent.getsockname()[1]}?timeout_seconds=0.3")
        with pytest.raises(BrokerUnavailable, match="did not confirm"):
            await sending.send("orders", message())


@pytest.mark.usefixtures("first_mishap_is_last")
async def test_a_server_without_working_tls(outlets):
    async def pretend(reader, writer):
        writer.write(b'INFO {"tls_required": true}\r\n')
        await reader.read(1)
        writer.write(b"no TLS is spoken here")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(pretend, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(BrokerUnavailable, match="no secure connection came about"):
            await outlets(orders=f"nats://127.0.0.1:{port}").send("orders", message())


@pytest.mark.usefixtures("first_mishap_is_last")
async def test_the_log_reports_an_outage_once_and_its_end_once(server, outlets, caplog):
    await server.add_stream("ORDERS", "orders")
    server.kill()
    sending = outlets(orders=server.url)
    for _ in range(2):
        with pytest.raises(BrokerUnavailable):
            await sending.send("orders", message())
    await asyncio.to_thread(server.start)
    for _ in range(2):
        await sending.send("orders", message())
    title = f"the NATS server at {server.host}"
    assert caplog.messages == [f"{title} cannot be reached: Connection refused", f"{title} is reached again"]


async def test_another_server_of_the_cluster_accepts_it(server, outlets):
    await server.add_stream("ORDERS", "orders")
    await outlets(orders=f"nats://127.0.0.1:{free_port()},{server.host}").send("orders", message())
    assert len(await server.messages("ORDERS")) == 1


@pytest.mark.parametrize("answer", [b"ok", b"{}", b"[]"])
async def test_an_answer_that_is_not_of_a_stream(server, outlets, answer):
    async with server.client() as streams:

        async def respond(request):
            await request.respond(answer)

        await streams._nc.subscribe("orders", cb=respond)
        await streams._nc.flush()
        with pytest.raises(BrokerRefused, match="is no stream"):
            await outlets(orders=server.url).send("orders", message())


async def test_a_step_that_has_timed_out(server, outlets):
    await server.add_stream("ORDERS", "orders")
    sending = outlets(orders=server.url)
    await sending.send("orders", message())
    server.pause()
    under_way = asyncio.create_task(sending.send("orders", message(message_id="m2")))
    await asyncio.wait([under_way], timeout=0.1)
    under_way.cancel()
    with pytest.raises(asyncio.CancelledError):
        await under_way
    server.resume()
    await sending.send("orders", message(message_id="m3"))


@pytest.mark.usefixtures("first_mishap_is_last")
async def test_a_stream_that_is_full(server, outlets):
    await server.add_stream("ORDERS", "orders", max_msgs=1, discard="new")
    sending = outlets(orders=server.url)
    await sending.send("orders", message())
    with pytest.raises(BrokerUnavailable, match="cannot keep the message: maximum messages exceeded"):
        await sending.send("orders", message(message_id="m2"))


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (message(b"x" * 200), "message size exceeds maximum allowed"),
        (message(b"x" * 2_000_000), "maximum payload exceeded"),
        (message(**{"a b": "c"}), "invalid header"),
        (message(a="b\r\nNats-Rollup: all"), "no single line of ASCII"),
        (message(a="é"), "no single line of ASCII"),
    ],
)
async def test_messages_that_it_rejects(server, outlets, sent, words):
    await server.add_stream("ORDERS", "orders", max_msg_size=100)
    with pytest.raises(BrokerRefused, match=words):
        await outlets(orders=server.url).send("orders", sent)


@pytest.mark.usefixtures("first_mishap_is_last")
@pytest.mark.parametrize(
    ("flags", "identity"), [(("--user", "a b", "--pass", "p@,"), "a%20b:p%40%2C"), (("--auth", "tok,"), "tok%2C")]
)
async def test_credentials(tmp_path, outlets, flags, identity):
    with NatsServer(tmp_path, *flags) as server:
        own = outlets(orders=f"nats://{identity}@{server.host}")
        with pytest.raises(QueueNotExist):  # which only authorized clients hear
            await own.send("orders", message())
        # It reports it and disconnects, and either may be noticed first.
        with pytest.raises(BrokerUnavailable, match=r"Authorization Violation|Connection reset"):
            await outlets(orders=server.url).send("orders", message())


async def test_nothing_is_sent_once_it_is_closed(server):
    await server.add_stream("ORDERS", "orders")
    sending = Outlets(read_outlets({"orders": server.url}))
    await sending.send("orders", message())
    server.pause()
    under_way = asyncio.create_task(sending.send("orders", message(message_id="m2")))
    await asyncio.wait([under_way], timeout=0.1)
    await sending.close()
    with pytest.raises(BrokerUnavailable):
        await under_way
    with pytest.raises(BrokerUnavailable, match="the server stops"):
        await sending.send("orders", message())
