"""aliyun-mns-sdk unchanged: every call on topics and subscriptions, and the requests to its users' endpoints."""

import json
from collections.abc import Iterator

import pytest
from defusedxml.ElementTree import fromstring
from mns.account import Account
from mns.mns_exception import MNSServerException
from mns.queue import QueueMeta
from mns.subscription import SubscriptionMeta, SubscriptionNotifyContentFormat, SubscriptionNotifyStrategy
from mns.topic import Base64TopicMessage, Topic, TopicMessage, TopicMeta

from tests.sdk.client import Access
from tests.support.push_server import PushServer

# The SDK's own attributes() warns of attributes that its authors want to drop.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")


@pytest.fixture(params=["opened", "keyed"])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    """A client of each server in turn; its connection is closed, which the SDK leaves to its users."""
    access: Access = request.getfixturevalue(request.param)
    account = Account(f"http://{access.address}", access.access_key_id, access.secret)
    yield account
    account.mns_client.close_connection()


@pytest.fixture
def topic(account: Account, unique: str) -> Topic:
    """A topic of this test alone."""
    topic: Topic = account.get_topic(unique)
    topic.create(TopicMeta())
    return topic


@pytest.fixture
def pushes() -> Iterator[PushServer]:
    with PushServer() as server:
        yield server


def type_of(raised: pytest.ExceptionInfo[MNSServerException]) -> str:
    assert raised.value.req_id
    return str(raised.value.type)


def test_topics_are_created_changed_listed_and_deleted(account: Account, unique: str) -> None:
    topic = account.get_topic(unique)
    url = topic.create(TopicMeta(maximum_message_size=2048))
    assert url.endswith(f"/topics/{unique}")
    assert topic.create(TopicMeta(maximum_message_size=2048)) == url
    with pytest.raises(MNSServerException) as raised:
        topic.create(TopicMeta(maximum_message_size=4096))
    assert type_of(raised) == "TopicAlreadyExist"
    topic.set_attributes(TopicMeta(maximum_message_size=4096, logging_enabled=True))
    found = topic.get_attributes()
    assert (found.topic_name, found.maximum_message_size, found.logging_enabled) == (unique, 4096, True)
    assert (found.message_count, found.message_retention_period) == (0, 86400)
    assert found.create_time <= found.last_modify_time
    urls, marker = account.list_topic(unique)
    assert (urls, marker) == ([url], "")
    topic.delete()
    topic.delete()
    with pytest.raises(MNSServerException) as raised:
        topic.get_attributes()
    assert type_of(raised) == "TopicNotExist"


def test_lists_come_in_pages(account: Account, unique: str) -> None:
    for number in range(3):
        account.get_topic(f"{unique}-{number}").create(TopicMeta())
    first, marker = account.list_topic(unique, 2)
    rest, end = account.list_topic(unique, 2, marker)
    assert [url.rpartition("-")[2] for url in first + rest] == ["0", "1", "2"]
    assert end == ""


def test_subscriptions_are_created_changed_listed_and_deleted(topic: Topic) -> None:
    subscription = topic.get_subscription("sub1")
    meta = SubscriptionMeta(
        "http://127.0.0.1:9/notify",
        SubscriptionNotifyStrategy.BACKOFF,
        SubscriptionNotifyContentFormat.SIMPLIFIED,
        "tagA",
    )
    url = subscription.subscribe(meta)
    assert subscription.subscribe(meta) == url
    with pytest.raises(MNSServerException) as raised:
        subscription.subscribe(SubscriptionMeta("http://127.0.0.1:9/other"))
    assert type_of(raised) == "SubscriptionAlreadyExist"
    subscription.set_attributes(SubscriptionMeta(notify_strategy=SubscriptionNotifyStrategy.EXPONENTIAL))
    found = subscription.get_attributes()
    assert (found.topic_name, found.subscription_name, found.endpoint) == (topic.topic_name, "sub1", meta.endpoint)
    assert (found.notify_strategy, found.notify_content_format) == ("EXPONENTIAL_DECAY_RETRY", "SIMPLIFIED")
    assert found.filter_tag == "tagA"
    topic.get_subscription("sub2").subscribe(SubscriptionMeta("http://127.0.0.1:9/notify"))
    urls, marker = topic.list_subscription()
    assert (urls, marker) == ([url, url.replace("sub1", "sub2")], "")
    first, marker = topic.list_subscription("sub", 1)
    rest, end = topic.list_subscription("sub", 1, marker)
    assert (first + rest, end) == (urls, "")
    subscription.unsubscribe()
    with pytest.raises(MNSServerException) as raised:
        subscription.get_attributes()
    assert type_of(raised) == "SubscriptionNotExist"


def test_an_endpoint_receives_its_subscription(topic: Topic, pushes: PushServer) -> None:
    formats = SubscriptionNotifyContentFormat
    for name in (formats.SIMPLIFIED, formats.XML, "JSON"):
        meta = SubscriptionMeta(f"{pushes.url}/{name}", notify_content_format=name, filter_tag="red")
        topic.get_subscription(name).subscribe(meta)
    topic.publish_message(TopicMessage("nobody wants this"))
    text = '{"k": "值 <&>"}'
    sent = topic.publish_message(TopicMessage(text, "red"))
    came = {push.path[1:]: push for push in (pushes.next(), pushes.next(), pushes.next())}
    assert came["SIMPLIFIED"].body == text
    assert came["SIMPLIFIED"].headers["x-mns-message-id"] == sent.message_id
    assert came["SIMPLIFIED"].headers["x-mns-message-tag"] == "red"
    in_xml = {each.tag.rpartition("}")[2]: each.text for each in fromstring(came["XML"].body)}
    in_json = {name: str(value) for name, value in json.loads(came["JSON"].body).items()}
    assert in_json.pop("SubscriptionName") == "JSON"
    assert in_xml.pop("SubscriptionName") == "XML"
    assert in_xml == in_json
    assert (in_xml["Message"], in_xml["MessageId"]) == (text, sent.message_id)
    assert (in_xml["MessageMD5"], in_xml["TopicName"]) == (sent.message_body_md5, topic.topic_name)


def test_a_queue_subscribes(account: Account, topic: Topic, unique: str) -> None:
    """As in the SDK's samples, the publisher uses the encoding of the queue's readers."""
    queue = account.get_queue(unique)
    queue.create(QueueMeta(polling_wait_sec=20))
    endpoint = f"acs:mns:cn-hangzhou:1234567890:queues/{unique}"
    meta = SubscriptionMeta(endpoint, notify_content_format=SubscriptionNotifyContentFormat.SIMPLIFIED)
    topic.get_subscription("queue").subscribe(meta)
    topic.publish_message(Base64TopicMessage("hello 值"))
    assert queue.receive_message_with_str_body(20).message_body == "hello 值"


@pytest.mark.parametrize("size", [65_536, 65_537])
def test_the_length_of_a_message_is_limited(topic: Topic, size: int) -> None:
    if size <= 65_536:
        assert topic.publish_message(TopicMessage("x" * size)).message_id
        return
    with pytest.raises(MNSServerException) as raised:
        topic.publish_message(TopicMessage("x" * size))
    assert type_of(raised) == "InvalidArgument"


def test_a_topic_that_does_not_exist(account: Account, unique: str) -> None:
    topic = account.get_topic(unique)
    for call in (
        lambda: topic.publish_message(TopicMessage("hello")),
        lambda: topic.get_subscription("s").subscribe(SubscriptionMeta("http://127.0.0.1:9/")),
        topic.list_subscription,
    ):
        with pytest.raises(MNSServerException) as raised:
            call()
        assert type_of(raised) == "TopicNotExist"
