"""@alicloud/mns unchanged: its operations on topics. Its deletion and its subscriptions send no request at all."""

from collections.abc import Iterator

import httpx
import pytest

from tests.sdk.client import Access
from tests.sdk.mns_client import MnsError, NodeMns
from tests.support.access_key import TOKEN
from tests.support.push_server import PushServer


@pytest.fixture(params=["opened", "keyed"])
def access(request: pytest.FixtureRequest) -> Access:
    """Each server in turn."""
    access: Access = request.getfixturevalue(request.param)
    return access


@pytest.fixture
def mns(access: Access) -> Iterator[NodeMns]:
    """A client of it."""
    client = NodeMns(access)
    yield client
    client.close()


@pytest.fixture
def topic(mns: NodeMns, unique: str) -> str:
    """A topic of this test alone."""
    mns.call("createTopic", unique, {"MaximumMessageSize": 2048})
    return unique


def test_topics_are_created_changed_and_listed(mns: NodeMns, topic: str) -> None:
    mns.call("createTopic", topic, {"MaximumMessageSize": 2048})
    with pytest.raises(MnsError) as raised:
        mns.call("createTopic", topic, {"MaximumMessageSize": 4096})
    assert raised.value.name == "MNSTopicAlreadyExistError"
    mns.call("setTopicAttributes", topic, {"MaximumMessageSize": 4096})
    found = mns.call("getTopicAttributes", topic)
    assert (found["TopicName"], found["MaximumMessageSize"]) == (topic, "4096")
    (listed,) = mns.call("listTopic", "", 10, topic)
    assert listed["TopicURL"].endswith(f"/topics/{topic}")


def test_published_messages_are_pushed(mns: NodeMns, access: Access, topic: str) -> None:
    with PushServer() as pushes:
        subscription = (
            f"<Subscription><Endpoint>{pushes.url}/hook</Endpoint>"
            "<NotifyContentFormat>SIMPLIFIED</NotifyContentFormat></Subscription>"
        )
        url = f"http://{access.address}/topics/{topic}/subscriptions/s"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.put(url, content=subscription, headers=headers, trust_env=False).status_code == 201
        sent = mns.call("publishMessage", topic, {"MessageBody": "hello", "MessageTag": "red"})
        push = pushes.next()
        assert (push.body, push.headers["x-mns-message-id"]) == ("hello", sent["MessageId"])
        assert push.headers["x-mns-message-tag"] == "red"


def test_a_topic_that_does_not_exist(mns: NodeMns, unique: str) -> None:
    with pytest.raises(MnsError) as raised:
        mns.call("publishMessage", unique, {"MessageBody": "hello"})
    assert raised.value.name == "MNSTopicNotExistError"
