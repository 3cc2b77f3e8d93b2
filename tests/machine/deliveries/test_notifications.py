"""The request that a subscriber receives, in each format."""

import hashlib
import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given
from hypothesis import strategies as st

from flowserver.machine.deliveries.notifications import ContentFormat, Notification, Published, content_of, headers_of

PUBLISHED = Published("news", "shop", "0190AB", '{"值": "<&>"}', "red", 1_767_225_600_123)
MD5 = hashlib.md5(PUBLISHED.body.encode()).hexdigest().upper()
FIELDS = {
    "TopicOwner": "flowserver",
    "TopicName": "news",
    "Subscriber": "flowserver",
    "SubscriptionName": "shop",
    "MessageId": "0190AB",
    "MessageMD5": MD5,
    "Message": PUBLISHED.body,
    "MessageTag": "red",
    "PublishTime": 1_767_225_600_123,
}


def read_xml(text: str) -> dict[str, str]:
    root: ElementTree.Element = fromstring(text)
    assert root.tag == "{http://mns.aliyuncs.com/doc/v1/}Notification"
    return {element.tag.partition("}")[2]: element.text or "" for element in root}


def test_the_document_in_xml() -> None:
    assert read_xml(content_of(PUBLISHED, ContentFormat.XML)) == {name: str(value) for name, value in FIELDS.items()}


def test_the_document_in_json() -> None:
    assert json.loads(content_of(PUBLISHED, ContentFormat.JSON)) == FIELDS


def test_the_message_alone() -> None:
    assert content_of(PUBLISHED, ContentFormat.SIMPLIFIED) == PUBLISHED.body


@pytest.mark.parametrize("content_format", [ContentFormat.XML, ContentFormat.JSON])
def test_a_message_without_a_tag_has_none(content_format: ContentFormat) -> None:
    assert "MessageTag" not in content_of(replace(PUBLISHED, tag=None), content_format)


@pytest.mark.parametrize(
    ("content_format", "content_type", "of_the_message"),
    [
        (ContentFormat.XML, "text/xml;charset=utf-8", {}),
        (ContentFormat.JSON, "application/json;charset=utf-8", {}),
        (
            ContentFormat.SIMPLIFIED,
            "text/plain;charset=utf-8",
            {"x-mns-message-id": "0190AB", "x-mns-message-tag": "red"},
        ),
    ],
)
def test_headers(content_format: ContentFormat, content_type: str, of_the_message: dict[str, str]) -> None:
    assert headers_of(PUBLISHED, content_format, "r") == {
        "Content-Type": content_type,
        "x-mns-version": "2015-06-06",
        "x-mns-request-id": "r",
        **of_the_message,
    }


def test_no_tag_no_header() -> None:
    assert "x-mns-message-tag" not in headers_of(replace(PUBLISHED, tag=None), ContentFormat.SIMPLIFIED, "r")


@given(st.text(st.characters(codec="utf-8")))
def test_every_message_can_be_parsed(body: str) -> None:
    published = replace(PUBLISHED, body=body)
    assert json.loads(content_of(published, ContentFormat.JSON))["Message"] == body
    as_xml = read_xml(content_of(published, ContentFormat.XML))["Message"]
    assert len(as_xml) == len(body)
    changed = [sent for got, sent in zip(as_xml, body, strict=True) if got != sent]
    assert all(sent < " " or sent in "\ufffe\uffff" for sent in changed)


def test_all_attempts_of_a_delivery_bring_the_same_under_the_same_id() -> None:
    first, second = (Notification("news/shop/0190AB", PUBLISHED, ContentFormat.XML, attempt) for attempt in (1, 2))
    assert (first.arrived_id, first.content) == (second.arrived_id, second.content)
    assert first.content == content_of(PUBLISHED, ContentFormat.XML)
    assert second.headers == headers_of(PUBLISHED, ContentFormat.XML, f"{first.arrived_id}-2")
    assert Notification("other", PUBLISHED, ContentFormat.XML, 1).arrived_id != first.arrived_id
