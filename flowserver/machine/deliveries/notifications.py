"""The content of notifications to a topic's subscribers: the message, or a document about it. Pure.

XML cannot contain every character: the document has U+FFFD in place of the others.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from xml.etree import ElementTree

from flowserver.base.derived_ids import arrived_id
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.xml_characters import fit_for_xml

NAMESPACE: Final = "http://mns.aliyuncs.com/doc/v1/"
API_VERSION: Final = "2015-06-06"
OWNER: Final = "flowserver"
"""The account that all topics and subscriptions belong to, for there are no accounts."""


TRACEPARENT_HEADER: Final = "traceparent"


class ContentFormat(StrEnum):
    """The content of notifications: a document about the message, or the message itself."""

    XML = "XML"
    JSON = "JSON"
    SIMPLIFIED = "SIMPLIFIED"


_CONTENT_TYPES: Final = {
    ContentFormat.XML: "text/xml;charset=utf-8",
    ContentFormat.JSON: "application/json;charset=utf-8",
    ContentFormat.SIMPLIFIED: "text/plain;charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Published:
    """A message of a topic, for one of its subscribers; `published_at` in ms."""

    topic: str
    subscription: str
    message_id: str
    body: str
    tag: str | None
    published_at: int


@dataclass(frozen=True, slots=True)
class Notification:
    """One attempt to bring a message of a topic, or a result of an invocation, to a destination."""

    delivery_id: str
    published: Published
    content_format: ContentFormat
    attempt: int
    traceparent: str | None = None
    """The span that caused it, if that was traced."""

    @property
    def arrived_id(self) -> str:
        """The id of what the delivery becomes where it arrives; the same for all its attempts."""
        return arrived_id(self.delivery_id)

    @property
    def content(self) -> str:
        """Its body, in the format that was asked for."""
        return content_of(self.published, self.content_format)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of its request."""
        headers = headers_of(self.published, self.content_format, f"{self.arrived_id}-{self.attempt}")
        return headers if self.traceparent is None else headers | {TRACEPARENT_HEADER: self.traceparent}


def digest_of(body: str) -> str:
    """The MD5 of a message's body, in the form of the message service."""
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest().upper()


def content_of(published: Published, content_format: ContentFormat) -> str:
    """The body of the notification."""
    if content_format is ContentFormat.SIMPLIFIED:
        return published.body
    fields = _fields(published)
    return dump_json(fields) if content_format is ContentFormat.JSON else _xml(fields)


def headers_of(published: Published, content_format: ContentFormat, request_id: str) -> dict[str, str]:
    """The headers of the notification's request; for a bare message they carry its metadata, too."""
    headers = {
        "Content-Type": _CONTENT_TYPES[content_format],
        "x-mns-version": API_VERSION,
        "x-mns-request-id": request_id,
    }
    if content_format is ContentFormat.SIMPLIFIED:
        headers["x-mns-message-id"] = published.message_id
        if published.tag is not None:
            headers["x-mns-message-tag"] = published.tag
    return headers


def _fields(published: Published) -> JsonObject:
    fields: JsonObject = {
        "TopicOwner": OWNER,
        "TopicName": published.topic,
        "Subscriber": OWNER,
        "SubscriptionName": published.subscription,
        "MessageId": published.message_id,
        "MessageMD5": digest_of(published.body),
        "Message": published.body,
    }
    if published.tag is not None:
        fields["MessageTag"] = published.tag
    return {**fields, "PublishTime": published.published_at}


def _xml(fields: JsonObject) -> str:
    root = ElementTree.Element("Notification", xmlns=NAMESPACE)
    for name, value in fields.items():
        ElementTree.SubElement(root, name).text = fit_for_xml(str(value))
    # A reader takes a bare carriage return for a line feed, and the digest would be wrong.
    text = ElementTree.tostring(root, encoding="unicode").replace("\r", "&#13;")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'
