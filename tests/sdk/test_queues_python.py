"""aliyun-mns-sdk unchanged: every call on queues and messages."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from mns.account import Account
from mns.mns_exception import MNSServerException
from mns.queue import Message, Queue, QueueMeta

from tests.sdk.client import Access

# The SDK's own attributes() warns of attributes that its authors want to drop.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")


@contextmanager
def connected(access: Access) -> Iterator[Account]:
    """A client whose connection is closed at the end, which the SDK leaves to its users."""
    account = Account(f"http://{access.address}", access.access_key_id, access.secret)
    yield account
    account.mns_client.close_connection()


@pytest.fixture(params=["opened", "keyed"])
def access(request: pytest.FixtureRequest) -> Access:
    """Each server in turn."""
    access: Access = request.getfixturevalue(request.param)
    return access


@pytest.fixture
def account(access: Access) -> Iterator[Account]:
    """A client of it."""
    with connected(access) as account:
        yield account


@pytest.fixture
def queue(account: Account, unique: str) -> Queue:
    """A queue of this test alone."""
    queue: Queue = account.get_queue(unique)
    queue.create(QueueMeta(vis_timeout=30))
    return queue


def type_of(raised: pytest.ExceptionInfo[MNSServerException]) -> str:
    assert raised.value.req_id
    return str(raised.value.type)


def test_queues_are_created_changed_listed_and_deleted(account: Account, unique: str) -> None:
    queue = account.get_queue(unique)
    meta = QueueMeta(vis_timeout=31, max_msg_size=2048, msg_ttl=600, delay_sec=1, polling_wait_sec=2)
    url = queue.create(meta)
    assert url.endswith(f"/queues/{unique}")
    assert queue.create(meta) == url
    with pytest.raises(MNSServerException) as raised:
        queue.create(QueueMeta(vis_timeout=32))
    assert type_of(raised) == "QueueAlreadyExist"
    queue.set_attributes(QueueMeta(vis_timeout=45, logging_enabled=True))
    found = queue.get_attributes()
    assert (found.visibility_timeout, found.maximum_message_size, found.message_retention_period) == (45, 2048, 600)
    assert (found.delay_seconds, found.polling_wait_seconds, found.logging_enabled) == (1, 2, True)
    assert found.queue_name == unique
    urls, marker = account.list_queue(unique[:9])
    assert (urls, marker) == ([url], "")
    queue.delete()
    queue.delete()
    with pytest.raises(MNSServerException) as raised:
        queue.get_attributes()
    assert type_of(raised) == "QueueNotExist"


def test_lists_come_in_pages(account: Account, unique: str) -> None:
    for number in range(3):
        account.get_queue(f"{unique[:20]}-{number}").create(QueueMeta())
    first, marker = account.list_queue(unique[:20], 2)
    second, end = account.list_queue(unique[:20], 2, marker)
    assert [url.rpartition("-")[2] for url in first + second] == ["0", "1", "2"]
    assert end == ""


def test_a_message_is_sent_received_and_deleted(queue: Queue) -> None:
    text = '{"taskToken": "abc", "k": "值 <&>"}'
    sent = queue.send_message(Message(text, priority=1))
    peeked = queue.peek_message()
    assert (peeked.message_id, peeked.dequeue_count) == (sent.message_id, 0)
    got = queue.receive_message_with_str_body(10)
    assert json.loads(got.message_body) == {"taskToken": "abc", "k": "值 <&>"}
    assert (got.message_id, got.message_body_md5) == (sent.message_id, sent.message_body_md5)
    assert (got.dequeue_count, got.priority) == (1, 1)
    assert got.next_visible_time - got.first_dequeue_time == 30_000
    queue.delete_message(got.receipt_handle)
    with pytest.raises(MNSServerException) as raised:
        queue.delete_message(got.receipt_handle)
    assert type_of(raised) == "MessageNotExist"


def test_bodies_need_not_be_encoded(queue: Queue) -> None:
    queue.set_encoding(False)
    text = "raw <xml> & text\n中文\t"
    queue.send_message(Message(text))
    got = queue.receive_message()
    assert got.message_body == text
    queue.set_encoding(True)
    queue.send_message(Message("plain"))
    assert queue.receive_message().message_body == b"plain"


def test_errors_are_those_that_the_sdk_expects(account: Account, queue: Queue) -> None:
    with pytest.raises(MNSServerException) as raised:
        queue.receive_message(0)
    assert type_of(raised) == "MessageNotExist"
    with pytest.raises(MNSServerException) as raised:
        queue.delete_message("nonsense")
    assert type_of(raised) == "ReceiptHandleError"
    with pytest.raises(MNSServerException) as raised:
        account.get_queue("none").send_message(Message("a"))
    assert type_of(raised) == "QueueNotExist"
    with pytest.raises(MNSServerException) as raised:
        queue.send_message(Message("a" * 60_000))  # more than 64 KiB, encoded
    assert type_of(raised) == "InvalidArgument"


def test_batches(queue: Queue) -> None:
    sent = queue.batch_send_message([Message("a", priority=16), Message("b"), Message("c", priority=1)])
    assert len({entry.message_id for entry in sent}) == 3
    assert [each.message_body for each in queue.batch_peek_message(16)] == [b"c", b"b", b"a"]
    got = queue.batch_receive_message(16, 5)
    assert [each.message_body for each in got] == [b"c", b"b", b"a"]
    handles = [each.receipt_handle for each in got]
    queue.batch_delete_message(handles[:2])
    with pytest.raises(MNSServerException) as raised:
        queue.batch_delete_message(handles)
    assert type_of(raised) == "MessageNotExist"
    assert [each["ReceiptHandle"] for each in raised.value.sub_errors] == handles[:2]
    assert queue.get_attributes().inactive_messages == 0
    with pytest.raises(MNSServerException) as raised:
        queue.batch_receive_message(16)
    assert type_of(raised) == "MessageNotExist"


def test_visibility_is_changed(queue: Queue) -> None:
    queue.send_message(Message("a"))
    got = queue.receive_message()
    changed = queue.change_message_visibility(got.receipt_handle, 60)
    assert int(changed.next_visible_time) - got.next_visible_time > 25_000
    with pytest.raises(MNSServerException) as raised:
        queue.change_message_visibility(got.receipt_handle, 60)
    assert type_of(raised) == "MessageNotExist"
    soon = queue.change_message_visibility(changed.receipt_handle, 1)
    again = queue.receive_message(10)
    assert again.message_id == got.message_id
    assert again.dequeue_count == 2
    assert time.time() * 1000 >= int(soon.next_visible_time) - 5


def test_a_delayed_message_arrives_when_due(queue: Queue) -> None:
    sent = queue.send_message(Message("a", delay_seconds=5))
    assert sent.receipt_handle
    attributes = queue.get_attributes()
    assert (attributes.active_messages, attributes.delay_messages) == (0, 1)
    assert queue.receive_message(30).message_id == sent.message_id


def test_a_long_poll_ends_with_the_next_message(access: Access, queue: Queue) -> None:
    got: list[bytes] = []

    def wait() -> None:
        with connected(access) as account:
            got.append(account.get_queue(queue.queue_name).receive_message(30).message_body)

    waiting = threading.Thread(target=wait)
    waiting.start()
    queue.send_message(Message("a"))
    waiting.join(60)
    assert got == [b"a"]


def test_a_wrong_secret_is_refused(keyed: Access) -> None:
    with connected(replace(keyed, secret="wrong")) as account, pytest.raises(MNSServerException) as raised:
        account.get_queue("q").receive_message()
    assert type_of(raised) == "SignatureDoesNotMatch"


def test_the_account_can_be_read(account: Account) -> None:
    assert account.get_attributes().logging_bucket == ""
