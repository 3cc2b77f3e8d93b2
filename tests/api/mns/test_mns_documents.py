"""Documents: hostile or malformed ones are refused, unusual ones are read, and replies are valid XML."""

from xml.etree.ElementTree import fromstring

import httpx
import pytest

from flowserver.api.mns.xml_documents import ELEMENTS_MAX, write_document, write_list
from tests.api.mns.conftest import Mns, document

SEND = ("POST", "/queues/q/messages")

BILLION = """<!DOCTYPE z [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<Message><MessageBody>&c;</MessageBody></Message>"""
FILE = """<!DOCTYPE z [<!ENTITY f SYSTEM "file:///etc/passwd">]><Message><MessageBody>&f;</MessageBody></Message>"""
OUTSIDE = """<!DOCTYPE Message SYSTEM "http://127.0.0.1:9/x.dtd"><Message><MessageBody>a</MessageBody></Message>"""


@pytest.fixture(autouse=True)
async def queue(mns: Mns) -> None:
    await mns.make_queue()


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        "<Message>",
        "<Message><MessageBody>a</MessageBody></Message>x",
        '<Message><MessageBody>{"a":"<x>"}</MessageBody></Message>',
        "<Other><MessageBody>a</MessageBody></Other>",
        "<Message><MessageBody>&undefined;</MessageBody></Message>",
        '<?xml version="1.0" encoding="none"?><Message/>',
        b"<Message><MessageBody>\xff</MessageBody></Message>",
        b"<Message><MessageBody>\x01</MessageBody></Message>",
        BILLION,
        FILE,
        OUTSIDE,
    ],
    ids=repr,
)
async def test_an_invalid_document_is_refused(mns: Mns, body: str | bytes) -> None:
    await mns.refused(400, "MalformedXML", *SEND, body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<Message><Priority>1</Priority><MessageBody>a</MessageBody></Message>", "a"),
        ("<Message><MessageBody><![CDATA[<a>]]></MessageBody></Message>", "<a>"),
        ("<Message><MessageBody>&#x4e2d;&amp;&lt;</MessageBody></Message>", "中&<"),
        ("<m:Message xmlns:m='x'><m:MessageBody>a</m:MessageBody></m:Message>", "a"),
        ("<Message><MessageBody> a\nb\t</MessageBody></Message>", " a\nb\t"),
        ("<Message><MessageBody>a&#13;b</MessageBody></Message>", "a\rb"),
        (
            "<?xml version='1.0' encoding='utf-16'?><Message><MessageBody>ü</MessageBody></Message>".encode("utf-16"),
            "ü",
        ),
    ],
    ids=repr,
)
async def test_bodies_are_returned_exactly(mns: Mns, body: str | bytes, text: str) -> None:
    await mns.ask(201, *SEND, body)
    assert (await mns.get())["MessageBody"] == text


async def test_deep_documents_are_harmless(mns: Mns) -> None:
    deep = "<a>" * 50_000 + "</a>" * 50_000
    await mns.refused(400, "MalformedXML", *SEND, f"<Message>{deep}</Message>")


async def test_a_document_with_too_many_elements_is_not_read_to_its_end(mns: Mns) -> None:
    many = "<a/>" * ELEMENTS_MAX
    assert "more than" in await mns.refused(400, "MalformedXML", *SEND, f"<Message>{many}</Message>")


@pytest.mark.parametrize("body", ["read <b>this</b> now", "\n<b>this</b>", "<b/>"])
async def test_a_body_that_was_not_escaped_is_not_cut_off(mns: Mns, body: str) -> None:
    sent = f"<Message><MessageBody>{body}</MessageBody></Message>"
    assert "MessageBody" in await mns.refused(400, "MalformedXML", *SEND, sent)
    assert "MessageBody" in await mns.refused(400, "MalformedXML", *SEND, f"<Messages>{sent}</Messages>")
    await mns.refused(400, "MalformedXML", "POST", "/topics/t/messages", sent)


async def test_a_request_that_is_too_large_is_refused_in_xml(mns: Mns) -> None:
    message = await mns.refused(400, "InvalidArgument", *SEND, document("Message", MessageBody="a" * 1_100_000))
    assert "1048576 bytes" in message


async def test_server_errors_are_reported_in_xml(mns: Mns, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("flowserver.operations.queues.QueueOperations.send", fail)
    await mns.refused(500, "InternalError", *SEND, document("Message", MessageBody="a"))


async def test_elements_that_would_be_lost_are_refused(mns: Mns) -> None:
    body = "<Message><MessageBody>a</MessageBody><UserProperties><PropertyValue/></UserProperties></Message>"
    assert "UserProperties" in await mns.refused(400, "InvalidArgument", *SEND, body)


def test_every_reply_is_valid_xml() -> None:
    odd = "a\x00\x0b\ufffe\ud800 <&>'\" ]]> \r\n ü"
    (element,) = fromstring(write_document("D", {"Text": odd, "None": None}))
    assert element.text == "a\ufffd\ufffd\ufffd\ufffd <&>'\" ]]> \r\n ü"
    root = fromstring(write_list("L", "I", [{"A": 1}, {"A": True}], {"Next": None}))
    assert [child[0].text for child in root] == ["1", "True"]


async def test_a_head_of_a_request_alone_is_no_call(client: httpx.AsyncClient, mns: Mns) -> None:
    await mns.refused(400, "InvalidRequestURL", "PATCH", "/queues/q")
    await mns.refused(400, "InvalidRequestURL", "GET", "/queues/q/other")
    await mns.refused(400, "InvalidRequestURL", "GET", "/queues/q/messages/x")


@pytest.mark.parametrize(
    ("method", "path", "body", "name"),
    [
        ("PUT", "/queues/new", "<Queue><QueueType>fifo</QueueType></Queue>", "QueueType"),
        (
            "PUT",
            "/queues/new",
            "<Queue><DLQPolicy><MaxReceiveCount>3</MaxReceiveCount></DLQPolicy></Queue>",
            "DLQPolicy",
        ),
        ("PUT", "/queues/q?metaoverride=true", "<Queue><Visibility>3</Visibility></Queue>", "Visibility"),
        ("POST", "/queues/q/messages", "<Message><MessageBody>a</MessageBody><Tag>t</Tag></Message>", "Tag"),
        ("PUT", "/topics/new", "<Topic><TopicType>fifo</TopicType></Topic>", "TopicType"),
        (
            "PUT",
            "/topics/t/subscriptions/s",
            "<Subscription><DlqPolicy><Enabled/></DlqPolicy></Subscription>",
            "DlqPolicy",
        ),
        ("POST", "/topics/t/messages", "<Message><MessageBody>a</MessageBody><Delay>1</Delay></Message>", "Delay"),
        ("PUT", "/?accountmeta=true", "<Account><Bucket>b</Bucket></Account>", "Bucket"),
    ],
)
async def test_unknown_elements_are_refused_by_name(mns: Mns, method: str, path: str, body: str, name: str) -> None:
    """What a client asks for and does not get must not be answered as done."""
    await mns.ask(201, "PUT", "/topics/t")
    assert f"{name}: not supported" in await mns.refused(400, "InvalidArgument", method, path, body)


async def test_attributes_that_were_read_may_be_sent_back(mns: Mns) -> None:
    fields = (await mns.ask(200, "GET", "/queues/q")).fields
    await mns.ask(204, "PUT", "/queues/q?metaoverride=true", document("Queue", **fields))
