"""Calls about queues and topics, for people who look after them. Workers use the message service's API."""

from flowserver.client.calls import get, send
from flowserver.client.exchanges import Conversation
from flowserver.client.listings import Listing, given
from flowserver.client.paths import path_of
from flowserver.client.results import Nothing, Queue, Topic


def queues(prefix: str | None = None, *, depth: bool = False) -> Listing[Queue]:
    """Queues by name, without the number of their messages.

    With `depth` their documents have `depth` and `oldestTime`.
    """
    return Listing(path_of("queues"), "queues", Queue, {"prefix": prefix, "depth": depth or None})


def get_queue(name: str) -> Conversation[Queue]:
    """A queue, and how many messages it has."""
    return get(Queue, path_of("queues", name))


def peek_messages(queue: str, limit: int = 1) -> Conversation[Nothing]:
    """The messages that would be received next, up to 16, as `document["messages"]`. They stay as they are."""
    return get(Nothing, path_of("queues", queue, "messages"), limit=limit)


def send_message(
    queue: str, body: str, *, delay_seconds: int | None = None, priority: int | None = None
) -> Conversation[Nothing]:
    """Send a message; `document["messageId"]` is its id. Not repeated when its answer is lost."""
    wanted = given({"body": body, "delaySeconds": delay_seconds, "priority": priority})
    return send(Nothing, "POST", path_of("queues", queue, "messages"), wanted)


def purge_queue(name: str) -> Conversation[Nothing]:
    """Delete the messages of a queue; `document["deleted"]` is their number.

    Not repeated when its answer is lost: a second purge would delete what was sent after the first.
    """
    return send(Nothing, "POST", path_of("queues", name, "purge"))


def topics(prefix: str | None = None, *, depth: bool = False) -> Listing[Topic]:
    """Topics by name, without their subscriptions; with `depth` their documents have `depth`."""
    return Listing(path_of("topics"), "topics", Topic, {"prefix": prefix, "depth": depth or None})


def get_topic(name: str) -> Conversation[Topic]:
    """A topic with the names of its subscriptions."""
    return get(Topic, path_of("topics", name))


def publish_message(topic: str, body: str, *, tag: str | None = None) -> Conversation[Nothing]:
    """Publish a message; `document["messageId"]` is its id. Not repeated when its answer is lost."""
    return send(Nothing, "POST", path_of("topics", topic, "messages"), given({"body": body, "tag": tag}))
