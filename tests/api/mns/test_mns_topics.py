"""Topics over the message service's API: documents in, documents out, and the recorded requests of its SDK."""

from xml.etree.ElementTree import Element

import httpx
import pytest
from defusedxml.ElementTree import fromstring

NAMESPACE = "{http://mns.aliyuncs.com/doc/v1/}"
HOST = "http://127.0.0.1:8080"
XMLNS = 'xmlns="http://mns.aliyuncs.com/doc/v1/"'
HEADERS = {"content-type": "text/xml;charset=UTF-8", "x-mns-version": "2015-06-06"}
SUBSCRIPTION = (
    f"<Subscription {XMLNS}><NotifyStrategy>BACKOFF_RETRY</NotifyStrategy>"
    "<Endpoint>http://127.0.0.1:9/notify</Endpoint><FilterTag>tagA</FilterTag>"
    "<NotifyContentFormat>SIMPLIFIED</NotifyContentFormat></Subscription>"
)
"""As recorded from the SDK for Python."""


async def ask(
    client: httpx.AsyncClient, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
) -> httpx.Response:
    content = f'<?xml version="1.0" encoding="utf-8"?>{body}' if body else ""
    return await client.request(method, path, content=content, headers={**HEADERS, **(headers or {})})


def read(reply: httpx.Response, name: str) -> Element:
    assert reply.headers["content-type"] == "text/xml;charset=utf-8", reply.text
    root: Element = fromstring(reply.content)
    assert root.tag == NAMESPACE + name, reply.text
    return root


def fields(element: Element) -> dict[str, str]:
    return {child.tag.removeprefix(NAMESPACE): child.text or "" for child in element}


def refused(reply: httpx.Response, status: int, code: str) -> str:
    found = fields(read(reply, "Error"))
    assert (reply.status_code, found["Code"]) == (status, code), reply.text
    assert found.keys() == {"Code", "Message", "RequestId", "HostId"}
    return found["Message"]


@pytest.fixture
async def topic(client: httpx.AsyncClient) -> str:
    reply = await ask(client, "PUT", "/topics/demo-topic", f"<Topic {XMLNS}/>")
    assert (reply.status_code, reply.headers["location"]) == (201, f"{HOST}/topics/demo-topic")
    return "/topics/demo-topic"


async def test_the_life_of_a_topic(client: httpx.AsyncClient, topic: str) -> None:
    body = f"<Topic {XMLNS}><MaximumMessageSize>65536</MaximumMessageSize></Topic>"
    again = await ask(client, "PUT", topic, body)
    assert (again.status_code, again.headers["location"], again.content) == (204, HOST + topic, b"")
    other = f"<Topic {XMLNS}><MaximumMessageSize>1024</MaximumMessageSize></Topic>"
    refused(await ask(client, "PUT", topic, other), 409, "TopicAlreadyExist")
    assert (await ask(client, "PUT", f"{topic}?metaoverride=true", other)).status_code == 204
    found = fields(read(await ask(client, "GET", topic), "Topic"))
    times = {found.pop("CreateTime"), found.pop("LastModifyTime")}
    assert all(len(time) == 10 for time in times)
    assert found == {
        "TopicName": "demo-topic",
        "MessageCount": "0",
        "MaximumMessageSize": "1024",
        "MessageRetentionPeriod": "86400",
        "LoggingEnabled": "False",
    }
    for _ in range(2):
        assert (await ask(client, "DELETE", topic)).status_code == 204
    refused(await ask(client, "GET", topic), 404, "TopicNotExist")
    refused(await ask(client, "PUT", f"{topic}?metaoverride=true", other), 404, "TopicNotExist")


async def test_topics_are_listed_in_pages(client: httpx.AsyncClient) -> None:
    for name in ("demo-1", "demo-2", "demo-3", "other"):
        await ask(client, "PUT", f"/topics/{name}")
    paging = {"x-mns-prefix": "demo", "x-mns-ret-number": "2"}
    first = read(await ask(client, "GET", "/topics", headers=paging), "Topics")
    assert [fields(child) for child in first[:2]] == [
        {"TopicURL": f"{HOST}/topics/demo-1"},
        {"TopicURL": f"{HOST}/topics/demo-2"},
    ]
    marker = fields(first)["NextMarker"]
    more = {**paging, "x-mns-marker": marker, "x-mns-with-meta": "true"}
    second = read(await ask(client, "GET", "/topics", headers=more), "Topics")
    assert "NextMarker" not in fields(second)
    (listed,) = [fields(child) for child in second]
    assert (listed["TopicURL"], listed["TopicName"]) == (f"{HOST}/topics/demo-3", "demo-3")
    for number in ("0", "1001", "x"):
        reply = await ask(client, "GET", "/topics", headers={"x-mns-ret-number": number})
        refused(reply, 400, "InvalidArgument")


async def test_the_life_of_a_subscription(client: httpx.AsyncClient, topic: str) -> None:
    path = f"{topic}/subscriptions/sub1"
    new = await ask(client, "PUT", path, SUBSCRIPTION)
    assert (new.status_code, new.headers["location"]) == (201, HOST + path)
    again = await ask(client, "PUT", path, SUBSCRIPTION)
    assert (again.status_code, again.headers["location"]) == (204, HOST + path)
    other = SUBSCRIPTION.replace("tagA", "tagB")
    refused(await ask(client, "PUT", path, other), 409, "SubscriptionAlreadyExist")
    strategy = f"<Subscription {XMLNS}><NotifyStrategy>EXPONENTIAL_DECAY_RETRY</NotifyStrategy></Subscription>"
    assert (await ask(client, "PUT", f"{path}?metaoverride=true", strategy)).status_code == 204
    found = fields(read(await ask(client, "GET", path), "Subscription"))
    assert found.pop("CreateTime")
    assert found.pop("LastModifyTime")
    assert found == {
        "TopicOwner": "flowserver",
        "Subscriber": "flowserver",
        "TopicName": "demo-topic",
        "SubscriptionName": "sub1",
        "Endpoint": "http://127.0.0.1:9/notify",
        "NotifyStrategy": "EXPONENTIAL_DECAY_RETRY",
        "NotifyContentFormat": "SIMPLIFIED",
        "FilterTag": "tagA",
    }
    listed = read(await ask(client, "GET", f"{topic}/subscriptions"), "Subscriptions")
    assert [fields(child) for child in listed] == [{"SubscriptionURL": HOST + path}]
    for _ in range(2):
        assert (await ask(client, "DELETE", path)).status_code == 204
    refused(await ask(client, "GET", path), 404, "SubscriptionNotExist")
    refused(await ask(client, "PUT", f"{path}?metaoverride=true", strategy), 404, "SubscriptionNotExist")
    assert len(read(await ask(client, "GET", f"{topic}/subscriptions"), "Subscriptions")) == 0


async def test_messages_that_a_subscription_filters_out(client: httpx.AsyncClient, topic: str) -> None:
    body = f"<Subscription {XMLNS}><Endpoint>acs:mns:cn-hangzhou:1:queues/q</Endpoint></Subscription>"
    assert (await ask(client, "PUT", f"{topic}/subscriptions/s", body)).status_code == 201
    found = fields(read(await ask(client, "GET", f"{topic}/subscriptions/s"), "Subscription"))
    assert (found["NotifyStrategy"], found["NotifyContentFormat"]) == ("BACKOFF_RETRY", "XML")
    assert "FilterTag" not in found


async def test_publishing(client: httpx.AsyncClient, topic: str) -> None:
    await ask(client, "PUT", f"{topic}/subscriptions/s", SUBSCRIPTION)
    body = f"<Message {XMLNS}><MessageBody>hello</MessageBody><MessageTag>tagA</MessageTag></Message>"
    reply = await ask(client, "POST", f"{topic}/messages", body)
    found = fields(read(reply, "Message"))
    assert (reply.status_code, found["MessageBodyMD5"]) == (201, "5D41402ABC4B2A76B9719D911017C592")
    assert len(found["MessageId"]) == 32
    assert fields(read(await ask(client, "GET", topic), "Topic"))["MessageCount"] == "1"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/topics/none/messages", "<Message><MessageBody>b</MessageBody></Message>", 404, "TopicNotExist"),
        ("POST", "/topics/demo-topic/messages", "<Message/>", 400, "InvalidArgument"),
        ("POST", "/topics/demo-topic/messages", "<Other/>", 400, "MalformedXML"),
        ("POST", "/topics/demo-topic/messages", "", 400, "MalformedXML"),
        (
            "POST",
            "/topics/demo-topic/messages",
            "<Message><MessageBody>b</MessageBody><UserProperties/></Message>",
            400,
            "InvalidArgument",
        ),
        ("PUT", "/topics/-t", "", 400, "InvalidArgument"),
        ("PUT", f"/topics/{'t' * 121}", "", 400, "InvalidArgument"),
        ("GET", "/topics/a%00b", "", 400, "InvalidArgument"),
        ("PUT", "/topics/t", "<Topic><MaximumMessageSize>1023</MaximumMessageSize></Topic>", 400, "InvalidArgument"),
        ("PUT", "/topics/none/subscriptions/s", SUBSCRIPTION, 404, "TopicNotExist"),
        ("PUT", "/topics/demo-topic/subscriptions/s_s", SUBSCRIPTION, 400, "InvalidArgument"),
        ("PUT", "/topics/demo-topic/subscriptions/s", "<Subscription/>", 400, "InvalidArgument"),
        (
            "PUT",
            "/topics/demo-topic/subscriptions/s",
            SUBSCRIPTION.replace("BACKOFF_RETRY", "NEVER"),
            400,
            "InvalidArgument",
        ),
        (
            "PUT",
            "/topics/demo-topic/subscriptions/s",
            SUBSCRIPTION.replace("tagA", "seventeen letters"),
            400,
            "InvalidArgument",
        ),
        ("PUT", "/topics/demo-topic/subscriptions/s?metaoverride=true", "<Subscription/>", 400, "InvalidArgument"),
        ("GET", "/topics/none/subscriptions", "", 404, "TopicNotExist"),
        ("GET", "/topics/none/subscriptions/s", "", 404, "SubscriptionNotExist"),
        ("PATCH", "/topics/demo-topic", "", 400, "InvalidRequestURL"),
        ("GET", "/topics/demo-topic/else", "", 400, "InvalidRequestURL"),
    ],
)
async def test_refused_requests(
    client: httpx.AsyncClient, topic: str, method: str, path: str, body: str, status: int, code: str
) -> None:
    refused(await ask(client, method, path, body), status, code)
