"""Destinations of deliveries and their notation. Knows the form of a destination, not whether it exists.

A queue and a topic may be written as in subscriptions (`acs:mns:{region}:{account}:queues/{q}`) or as in flows and
destinations (`acs:mns:…:/queues/{q}/messages`). Region and account may be empty and are not used: everything is here.
"""

import re
from dataclasses import dataclass
from typing import Final

_OWNER = "[A-Za-z0-9_-]*"
_PLACE = "[A-Za-z0-9][A-Za-z0-9-]{0,119}"
_NAME = "[A-Za-z_][A-Za-z0-9_-]{0,127}"
_QUEUE = re.compile(rf"acs:mns:{_OWNER}:{_OWNER}:/?queues/({_PLACE})(?:/messages)?")
_TOPIC = re.compile(rf"acs:mns:{_OWNER}:{_OWNER}:/?topics/({_PLACE})(?:/messages)?")
_FUNCTION = re.compile(
    rf"acs:fc:{_OWNER}:{_OWNER}:services/({_NAME})(?:\.([A-Za-z0-9_-]{{1,128}}))?/functions/({_NAME})"
)
_WEB = re.compile(r"https?://.+", re.IGNORECASE | re.DOTALL)

_WEB_FORM: Final = "http(s)://…"
_QUEUE_FORM: Final = "acs:mns:{region}:{account}:queues/{queue}"
_TOPIC_FORM: Final = "acs:mns:{region}:{account}:topics/{topic}"
_FUNCTION_FORM: Final = "acs:fc:{region}:{account}:services/{service}/functions/{function}"
SUBSCRIBER_FORMS: Final = f"{_WEB_FORM}, {_QUEUE_FORM} or {_FUNCTION_FORM}"
"""How the endpoint of a subscription is written, which cannot be another topic."""
FORMS: Final = f"{_WEB_FORM}, {_QUEUE_FORM}, {_TOPIC_FORM} or {_FUNCTION_FORM}"


class NoDestination(ValueError):
    """The text names no destination."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An external HTTP endpoint; `invokers.endpoint_checks` checks its URL."""

    url: str


@dataclass(frozen=True, slots=True)
class QueueAddress:
    """A queue of this server."""

    queue: str


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """A topic of this server."""

    topic: str


@dataclass(frozen=True, slots=True)
class FunctionAddress:
    """A registered function; `qualifier` is "" if none is named."""

    service: str
    qualifier: str
    function: str


Destination = WebAddress | QueueAddress | TopicAddress | FunctionAddress


def read_destination(text: str) -> Destination:
    """The destination that the text names; raises NoDestination, which lists the accepted forms."""
    if found := _QUEUE.fullmatch(text):
        return QueueAddress(found[1])
    if found := _TOPIC.fullmatch(text):
        return TopicAddress(found[1])
    if found := _FUNCTION.fullmatch(text):
        return FunctionAddress(found[1], found[2] or "", found[3])
    if _WEB.fullmatch(text):
        return WebAddress(text)
    raise NoDestination(f"this is no place to deliver to; write {FORMS}")
