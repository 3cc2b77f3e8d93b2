"""Messages over the wire: sent, received, peeked at, hidden, deleted, alone and in batches."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.mns.conftest import Mns, document
from tests.api.rest.conftest import LiveServer
from tests.support.clock import ManualClock

MESSAGES = "/queues/q/messages"


@pytest.fixture
def app(sqlite_url: str, clock: ManualClock) -> Application:
    return create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)


@pytest.fixture(autouse=True)
async def queue(mns: Mns) -> None:
    await mns.make_queue()


def batch(*bodies: str) -> str:
    items = "".join(f"<Message><MessageBody>{body}</MessageBody></Message>" for body in bodies)
    return f"<Messages>{items}</Messages>"


def handles(*given: str | None) -> str:
    return (
        "<ReceiptHandles>" + "".join(f"<ReceiptHandle>{each}</ReceiptHandle>" for each in given) + "</ReceiptHandles>"
    )


async def test_a_message_and_its_attributes(mns: Mns, clock: ManualClock) -> None:
    sent = await mns.put("aGVsbG8=", Priority=3)
    assert sent.keys() == {"MessageId", "MessageBodyMD5"}
    now = clock.now_ms()
    clock.advance(seconds=2)
    got = await mns.get()
    assert got == {
        "MessageId": sent["MessageId"],
        "MessageBody": "aGVsbG8=",
        "MessageBodyMD5": sent["MessageBodyMD5"],
        "EnqueueTime": str(now),
        "FirstDequeueTime": str(now + 2_000),
        "NextVisibleTime": str(now + 32_000),
        "DequeueCount": "1",
        "Priority": "3",
        "ReceiptHandle": got["ReceiptHandle"],
    }
    assert sent["MessageBodyMD5"] == "0733351879B2FA9BD05C7CA3061529C0"
    await mns.ask(204, "DELETE", f"{MESSAGES}?ReceiptHandle={got['ReceiptHandle']}")
    clock.advance(seconds=60)
    await mns.refused(404, "MessageNotExist", "GET", MESSAGES)


async def test_peeking_changes_nothing(mns: Mns, clock: ManualClock) -> None:
    await mns.put("a")
    for _ in range(2):
        peeked = await mns.get(query="?peekonly=true")
        assert (peeked["MessageBody"], peeked["DequeueCount"], peeked["FirstDequeueTime"]) == ("a", "0", "0")
        assert not {"ReceiptHandle", "NextVisibleTime"} & peeked.keys()
    first = await mns.get()
    await mns.refused(404, "MessageNotExist", "GET", f"{MESSAGES}?peekonly=true")
    clock.advance(seconds=30)
    (back,) = (await mns.ask(200, "GET", f"{MESSAGES}?peekonly=true&numOfMessages=16")).items
    assert (back["MessageId"], back["DequeueCount"]) == (first["MessageId"], "1")


async def test_a_delayed_message_can_be_deleted(mns: Mns, clock: ManualClock) -> None:
    await mns.ask(204, "PUT", "/queues/q?metaoverride=true", document("Queue", DelaySeconds=9))
    sent = await mns.put("a")
    assert "ReceiptHandle" not in await mns.put("now", DelaySeconds=0)
    assert (await mns.get())["MessageBody"] == "now"
    other = await mns.put("b")
    await mns.refused(404, "MessageNotExist", "GET", MESSAGES)
    await mns.ask(204, "DELETE", f"{MESSAGES}?ReceiptHandle={sent['ReceiptHandle']}")
    clock.advance(seconds=9)
    assert (await mns.get())["MessageBody"] == "b"
    await mns.refused(404, "MessageNotExist", "DELETE", f"{MESSAGES}?ReceiptHandle={other['ReceiptHandle']}")


@pytest.mark.parametrize(
    ("handle", "seconds"), [("ReceiptHandle", "VisibilityTimeout"), ("receiptHandle", "visibilityTimeout")]
)
async def test_visibility_is_changed_under_a_new_handle(
    mns: Mns, clock: ManualClock, handle: str, seconds: str
) -> None:
    await mns.put("a")
    got = await mns.get()
    changed = (await mns.ask(200, "PUT", f"{MESSAGES}?{handle}={got['ReceiptHandle']}&{seconds}=60")).fields
    assert changed["NextVisibleTime"] == str(clock.now_ms() + 60_000)
    await mns.refused(404, "MessageNotExist", "DELETE", f"{MESSAGES}?ReceiptHandle={got['ReceiptHandle']}")
    clock.advance(seconds=59)
    await mns.refused(404, "MessageNotExist", "GET", MESSAGES)
    await mns.ask(204, "DELETE", f"{MESSAGES}?ReceiptHandle={changed['ReceiptHandle']}")


async def test_batches_are_sent_received_and_deleted(mns: Mns) -> None:
    sent = await mns.ask(201, "POST", MESSAGES, batch("a", "b", "c"))
    assert sent.name == "Messages"
    got = await mns.ask(200, "GET", f"{MESSAGES}?numOfMessages=16&waitseconds=1")
    assert [item["MessageBody"] for item in got.items] == ["a", "b", "c"]
    assert [item["MessageId"] for item in got.items] == [item["MessageId"] for item in sent.items]
    receipts = [item["ReceiptHandle"] for item in got.items]
    failed = await mns.ask(404, "DELETE", MESSAGES, handles(receipts[0], "nonsense", f"{receipts[1]}0"))
    assert failed.name == "Errors"
    assert [(item["ErrorCode"], item["ReceiptHandle"]) for item in failed.items] == [
        ("ReceiptHandleError", "nonsense"),
        ("MessageNotExist", f"{receipts[1]}0"),
    ]
    await mns.ask(204, "DELETE", MESSAGES, handles(*receipts[1:]))
    nested = f"<ReceiptHandles><ReceiptHandle>{handles(receipts[2])[16:-17]}</ReceiptHandle></ReceiptHandles>"
    (error,) = (await mns.ask(404, "DELETE", MESSAGES, nested)).items
    assert error["ReceiptHandle"] == receipts[2], "the Node SDK's nesting is understood"


@pytest.mark.parametrize("count", ["0", "17", "x", "-1"])
async def test_batches_have_one_to_sixteen(mns: Mns, count: str) -> None:
    await mns.refused(400, "InvalidArgument", "GET", f"{MESSAGES}?numOfMessages={count}")
    await mns.refused(400, "InvalidArgument", "GET", f"{MESSAGES}?numOfMessages={count}&peekonly=true")


async def test_one_error_in_a_batch_fails_all_of_it(mns: Mns) -> None:
    await mns.refused(400, "InvalidArgument", "POST", MESSAGES, batch())
    await mns.refused(400, "InvalidArgument", "POST", MESSAGES, batch(*"abcdefghijklmnopq"))
    await mns.refused(400, "InvalidArgument", "POST", MESSAGES, batch("good", ""))
    await mns.refused(400, "InvalidArgument", "POST", MESSAGES, batch("a" * 40_000, "b" * 40_000))
    await mns.refused(400, "InvalidArgument", "DELETE", MESSAGES, handles(*"abcdefghijklmnopq"))
    await mns.refused(404, "MessageNotExist", "GET", MESSAGES)


@pytest.mark.parametrize(
    ("name", "value"),
    [("Priority", "0"), ("Priority", "17"), ("Priority", "x"), ("DelaySeconds", "604801"), ("DelaySeconds", "-1")],
)
async def test_attributes_of_messages_have_ranges(mns: Mns, name: str, value: str) -> None:
    await mns.refused(400, "InvalidArgument", "POST", MESSAGES, document("Message", MessageBody="a", **{name: value}))


async def test_a_body_has_at_most_64_kib(mns: Mns) -> None:
    await mns.put("ü" * 32_768)
    await mns.refused(400, "InvalidArgument", "POST", MESSAGES, document("Message", MessageBody="ü" * 32_769))


async def test_missing_parts_of_a_request_are_named(mns: Mns) -> None:
    await mns.refused(400, "MissingReceiptHandle", "DELETE", MESSAGES)
    await mns.refused(400, "MissingReceiptHandle", "PUT", f"{MESSAGES}?VisibilityTimeout=1")
    await mns.refused(400, "MissingVisibilityTimeout", "PUT", f"{MESSAGES}?ReceiptHandle=a-b")
    await mns.refused(400, "ReceiptHandleError", "PUT", f"{MESSAGES}?ReceiptHandle=ab&VisibilityTimeout=1")
    await mns.refused(400, "InvalidArgument", "PUT", f"{MESSAGES}?ReceiptHandle=a-b&VisibilityTimeout=0")
    await mns.refused(400, "InvalidArgument", "PUT", f"{MESSAGES}?ReceiptHandle=a-b&VisibilityTimeout=43201")
    await mns.refused(400, "ReceiptHandleError", "DELETE", f"{MESSAGES}?ReceiptHandle=")
    await mns.refused(400, "InvalidArgument", "GET", f"{MESSAGES}?waitseconds=31")
    await mns.refused(404, "MessageNotExist", "GET", f"{MESSAGES}?waitseconds=0")


async def test_calls_on_a_missing_queue_get_that_error(mns: Mns) -> None:
    none = "/queues/none/messages"
    await mns.refused(404, "QueueNotExist", "POST", none, document("Message", MessageBody="a"))
    for query in ("", "?waitseconds=9", "?peekonly=true", "?numOfMessages=3"):
        await mns.refused(404, "QueueNotExist", "GET", none + query)
    await mns.refused(404, "QueueNotExist", "DELETE", f"{none}?ReceiptHandle=a-b")
    await mns.refused(404, "QueueNotExist", "PUT", f"{none}?ReceiptHandle=a-b&VisibilityTimeout=1")


async def test_a_long_poll_is_answered_by_the_next_message(mns: Mns) -> None:
    waiting = asyncio.create_task(mns.get(query="?waitseconds=30"))
    await mns.put("a")
    assert (await waiting)["MessageBody"] == "a"


@pytest.fixture
async def live(app: Application, mns: Mns) -> AsyncIterator[str]:
    """Also the running application on a real socket."""
    server = LiveServer(app)
    server.config.lifespan = "off"
    serving = asyncio.create_task(server.serve())
    await server.listens.wait()
    yield server.url
    server.should_exit = True
    await serving


async def test_a_cancelled_receiver_takes_no_message(app: Application, mns: Mns, live: str) -> None:
    queues = app.state.engine.queues
    _, writer = await asyncio.open_connection("127.0.0.1", int(live.rpartition(":")[2]))
    writer.write(f"GET {MESSAGES}?waitseconds=30 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    while not queues.waiting:
        await mns.send("GET", "/queues")
    writer.close()
    while queues.waiting:
        await mns.send("GET", "/queues")
    await mns.put("a")
    assert (await mns.get())["DequeueCount"] == "1"


async def test_paths_of_other_apis_are_unaffected(client: httpx.AsyncClient) -> None:
    assert (await client.get("/queuesx")).status_code == 404
    assert (await client.get("/?Action=ListFlows")).json()["Flows"] == []
