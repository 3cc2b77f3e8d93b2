"""Queues, their messages, and topics, as people look at them; programs use the message service's API."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.counts import Count
from flowserver.api.rest.models.shared_types import (
    LIMITS,
    PREFIX_PATTERN,
    Instant,
    NextToken,
    PageQuery,
    QueryParameters,
    RequestBody,
    Resource,
    with_examples,
)
from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject
from flowserver.operations.queues import DEPTHS_MAX, PRIORITY_MAX, OutgoingMessage
from flowserver.store.queues.depths import DEPTH_MAX, Depth
from flowserver.store.queues.messages import Counts, QueueMessage
from flowserver.store.queues.queues import QueueRow
from flowserver.store.queues.topics import TopicRow
from flowserver.store.sql.bounded_counts import Count as Counted

_ATTRIBUTES: JsonObject = {
    "name": "work",
    "delaySeconds": 0,
    "visibilitySeconds": 30,
    "retentionSeconds": 345_600,
    "pollingSeconds": 0,
    "messageBytesMax": 65_536,
    "createdTime": "2026-01-02T03:04:05.678Z",
    "lastModifiedTime": "2026-01-02T03:04:05.678Z",
}
_MESSAGE: JsonObject = {
    "messageId": "019B7D3E2F6A7C519D0F1F0C6A4E8B21",
    "body": "hello",
    "priority": 8,
    "dequeueCount": 0,
    "enqueuedTime": "2026-01-02T03:04:05.678Z",
    "visibleTime": "2026-01-02T03:04:05.678Z",
    "expiresTime": "2026-01-06T03:04:05.678Z",
    "traceparent": None,
}
_DEPTH: JsonObject = {"depth": {"count": 3, "atLeast": False}, "oldestTime": "2026-01-02T03:04:05.678Z"}
_TOPIC: JsonObject = {
    "name": "orders",
    "messageBytesMax": 65_536,
    "createdTime": "2026-01-02T03:04:05.678Z",
    "lastModifiedTime": "2026-01-02T03:04:05.678Z",
}

MessageId = Annotated[str, Field(description="Names the message among all of the server.")]
Body = Annotated[str, Field(min_length=1, description="The message's text; the message service's SDKs send Base64.")]


class PrefixQuery(PageQuery):
    """Which page of queues or topics."""

    prefix: Annotated[str, Field(pattern=PREFIX_PATTERN, description="Only those whose names begin so.")] = ""


class PeekQuery(QueryParameters):
    """How many messages to show."""

    limit: Annotated[
        int, Field(ge=1, le=LIMITS.queue_batch_max, description=f"Messages, 1 to {LIMITS.queue_batch_max}.")
    ] = 1


class DepthQuery(PrefixQuery):
    """Which page, and whether with depths."""

    depth: Annotated[
        bool,
        Field(description=f"Whether to say how deep each one is; such a page has at most {DEPTHS_MAX} items."),
    ] = False


class QueueSummary(Resource):
    """A queue as listings show it."""

    model_config = with_examples(_ATTRIBUTES)

    name: str
    delay_seconds: Annotated[int, Field(description="How long a message that is sent stays invisible.")]
    visibility_seconds: Annotated[int, Field(description="How long a received message stays invisible.")]
    retention_seconds: Annotated[int, Field(description="How long a message is kept.")]
    polling_seconds: Annotated[int, Field(description="How long a receive waits for a message.")]
    message_bytes_max: int
    created_time: Instant
    last_modified_time: Instant

    @classmethod
    def of(cls, row: QueueRow) -> Self:
        """The queue without counts."""
        return cls(**_queue(row))


class Queue(QueueSummary):
    """A queue, and how many messages it has."""

    model_config = with_examples({**_ATTRIBUTES, "ready": 2, "received": 1, "delayed": 0})

    ready: Annotated[int, Field(description="Messages that a receive gets.")]
    received: Annotated[int, Field(description="Messages that were received, and are neither deleted nor visible yet.")]
    delayed: Annotated[int, Field(description="Messages that are not visible for the first time yet.")]

    @classmethod
    def counted(cls, row: QueueRow, counts: Counts) -> Self:
        """The queue with its counts."""
        return cls(**_queue(row), ready=counts.active, received=counts.inactive, delayed=counts.delayed)


def _queue(row: QueueRow) -> dict[str, str | int]:
    return {
        "name": row.name,
        "delay_seconds": row.delay_seconds,
        "visibility_seconds": row.visibility_seconds,
        "retention_seconds": row.retention_seconds,
        "polling_seconds": row.polling_seconds,
        "message_bytes_max": row.message_bytes_max,
        "created_time": format_instant(row.created_at),
        "last_modified_time": format_instant(row.modified_at),
    }


class ListedQueue(QueueSummary):
    """A queue as listings show it, perhaps with its depth."""

    model_config = with_examples({**_ATTRIBUTES, **_DEPTH})

    depth: Annotated[
        Count | None,
        Field(description=f"Messages in any state, counted up to {DEPTH_MAX:,}; null unless asked for."),
    ]
    oldest_time: Annotated[Instant | None, Field(description="When the oldest of them was sent.")]

    @classmethod
    def listed(cls, row: QueueRow, depth: Depth | None) -> Self:
        """The queue and its depth."""
        oldest = None if depth is None else depth.oldest_at
        return cls(
            **_queue(row),
            depth=None if depth is None else Count.of(depth.messages),
            oldest_time=None if oldest is None else format_instant(oldest),
        )


class QueuePage(Resource):
    """Queues by name."""

    model_config = with_examples({"queues": [{**_ATTRIBUTES, **_DEPTH}], "nextToken": None})

    queues: list[ListedQueue]
    next_token: NextToken


class PeekedMessage(Resource):
    """A message that was not received by this look at it."""

    model_config = with_examples(_MESSAGE)

    message_id: MessageId
    body: str
    priority: Annotated[int, Field(description=f"1 to {PRIORITY_MAX}; 1 is received first.")]
    dequeue_count: Annotated[int, Field(description="How often it was received.")]
    enqueued_time: Instant
    visible_time: Instant
    expires_time: Instant
    traceparent: Annotated[
        str | None, Field(description="The span that sent it (W3C Trace Context); null if it was not traced.")
    ]

    @classmethod
    def of(cls, message: QueueMessage) -> Self:
        """The message, without its receipt."""
        return cls(
            message_id=message.message_id,
            body=message.body,
            priority=message.priority,
            dequeue_count=message.dequeue_count,
            enqueued_time=format_instant(message.enqueued_at),
            visible_time=format_instant(message.visible_at),
            expires_time=format_instant(message.expires_at),
            traceparent=message.traceparent,
        )


class PeekedMessages(Resource):
    """The messages that would be received next."""

    model_config = with_examples({"messages": [_MESSAGE]})

    messages: list[PeekedMessage]


class SendMessage(RequestBody):
    """A message to send."""

    model_config = with_examples({"body": "hello", "delaySeconds": 60})

    body: Body
    delay_seconds: Annotated[
        int | None, Field(ge=0, description="How long it stays invisible; the queue's own delay if absent.")
    ] = None
    priority: Annotated[int, Field(ge=1, le=PRIORITY_MAX, description=f"1 to {PRIORITY_MAX}; 1 is received first.")] = (
        OutgoingMessage(body="").priority
    )

    def message(self) -> OutgoingMessage:
        """The message."""
        return OutgoingMessage(body=self.body, delay_seconds=self.delay_seconds, priority=self.priority)


class SentMessage(Resource):
    """The message is stored."""

    model_config = with_examples({"messageId": _MESSAGE["messageId"]})

    message_id: MessageId


class PurgedQueue(Resource):
    """How many messages were deleted."""

    model_config = with_examples({"deleted": 3})

    deleted: int


class TopicSummary(Resource):
    """A topic as listings show it."""

    model_config = with_examples(_TOPIC)

    name: str
    message_bytes_max: int
    created_time: Instant
    last_modified_time: Instant

    @classmethod
    def of(cls, row: TopicRow) -> Self:
        """The topic."""
        return cls(
            name=row.name,
            message_bytes_max=row.message_bytes_max,
            created_time=format_instant(row.created_at),
            last_modified_time=format_instant(row.modified_at),
        )


class Topic(TopicSummary):
    """A topic, and how much of it is under way."""

    model_config = with_examples({**_TOPIC, "undelivered": 0, "subscriptions": ["to-work"]})

    undelivered: Annotated[int, Field(description="Messages that are not yet delivered to all their subscribers.")]
    subscriptions: Annotated[list[str], Field(description="Names of its subscriptions, up to 1,000.")]


class ListedTopic(TopicSummary):
    """A topic as listings show it, perhaps with its depth."""

    model_config = with_examples({**_TOPIC, "depth": _DEPTH["depth"]})

    depth: Annotated[
        Count | None,
        Field(description=f"Deliveries that have not arrived, counted up to {DEPTH_MAX:,}; null unless asked for."),
    ]

    @classmethod
    def listed(cls, row: TopicRow, depth: Counted | None) -> Self:
        """The topic and its depth."""
        shown = TopicSummary.of(row).model_dump(by_alias=False)
        return cls(**shown, depth=None if depth is None else Count.of(depth))


class TopicPage(Resource):
    """Topics by name."""

    model_config = with_examples({"topics": [{**_TOPIC, "depth": None}], "nextToken": None})

    topics: list[ListedTopic]
    next_token: NextToken


class PublishMessage(RequestBody):
    """A message to publish."""

    model_config = with_examples({"body": "hello", "tag": "paid"})

    body: Body
    tag: Annotated[str | None, Field(description="What subscriptions filter by; at most 16 characters.")] = None
