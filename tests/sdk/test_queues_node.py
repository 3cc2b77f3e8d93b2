"""@alicloud/mns unchanged: its operations on queues and messages. It neither encodes bodies nor escapes them."""

from collections.abc import Iterator

import pytest

from tests.sdk.client import Access
from tests.sdk.mns_client import MnsError, NodeMns


@pytest.fixture(params=["opened", "keyed"])
def mns(request: pytest.FixtureRequest) -> Iterator[NodeMns]:
    """A client of each server in turn."""
    access: Access = request.getfixturevalue(request.param)
    client = NodeMns(access)
    yield client
    client.close()


@pytest.fixture
def queue(mns: NodeMns, unique: str) -> str:
    """A queue of this test alone."""
    mns.call("createQueue", unique, {"VisibilityTimeout": 30})
    return unique


def test_queues_are_created_changed_listed_and_deleted(mns: NodeMns, queue: str) -> None:
    mns.call("createQueue", queue, {"VisibilityTimeout": 30})
    with pytest.raises(MnsError) as raised:
        mns.call("createQueue", queue, {"VisibilityTimeout": 31})
    assert raised.value.name == "MNSQueueAlreadyExistError"
    mns.call("setQueueAttributes", queue, {"VisibilityTimeout": 45})
    assert mns.call("getQueueAttributes", queue)["VisibilityTimeout"] == "45"
    listed = mns.call("listQueue", "", 10, queue)
    assert listed[0]["QueueURL"].endswith(f"/queues/{queue}")
    mns.call("deleteQueue", queue)
    with pytest.raises(MnsError) as raised:
        mns.call("receiveMessage", queue, 1)
    assert raised.value.name == "MNSQueueNotExistError"


def test_a_message_is_sent_received_hidden_and_deleted(mns: NodeMns, queue: str) -> None:
    sent = mns.call("sendMessage", queue, {"MessageBody": "aGk=", "Priority": 1})
    assert mns.call("peekMessage", queue)["MessageId"] == sent["MessageId"]
    got = mns.call("receiveMessage", queue, 10)
    assert (got["MessageBody"], got["DequeueCount"]) == ("aGk=", "1")
    changed = mns.call("changeMessageVisibility", queue, got["ReceiptHandle"], 60)
    assert int(changed["NextVisibleTime"]) > int(got["NextVisibleTime"])
    mns.call("deleteMessage", queue, changed["ReceiptHandle"])
    with pytest.raises(MnsError) as raised:
        mns.call("receiveMessage", queue)
    assert raised.value.name == "MNSMessageNotExistError"


def test_batches(mns: NodeMns, queue: str) -> None:
    sent = mns.call("batchSendMessage", queue, [{"MessageBody": "a"}, {"MessageBody": "b"}])
    assert len(sent) == 2
    assert [each["MessageBody"] for each in mns.call("batchPeekMessage", queue, 16)] == ["a", "b"]
    got = mns.call("batchReceiveMessage", queue, 16, 5)
    handles = [each["ReceiptHandle"] for each in got]
    assert mns.call("batchDeleteMessage", queue, handles) is None
    failed = mns.call("batchDeleteMessage", queue, handles)
    assert [each["ErrorCode"] for each in failed] == ["MessageNotExist"] * 2


def test_unescaped_bodies_are_refused(mns: NodeMns, queue: str) -> None:
    with pytest.raises(MnsError) as raised:
        mns.call("sendMessage", queue, {"MessageBody": '{"a": "<x>"}'})
    assert raised.value.name == "MNSMalformedXMLError"
