"""The calls on topics, their subscriptions and messages: the elements that each reads, and its answer."""

from enum import StrEnum
from typing import TypeVar

from flowserver.api.mns.answers import Answer, answered
from flowserver.api.mns.calls import (
    Call,
    boolean_in,
    integer_in,
    is_true,
    known_fields,
    located,
    paging,
)
from flowserver.api.mns.xml_documents import Fields, read_document, write_list
from flowserver.base.errors import InvalidArgument
from flowserver.machine.deliveries.notifications import OWNER, ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.operations.operations import Operations
from flowserver.operations.subscriptions import SubscriptionAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.store.queues.topics import SubscriptionRow, TopicRow

RETENTION_SECONDS = 86_400
"""The time for deliveries that the service documents; about as long as the longest retry strategy."""

E = TypeVar("E", bound=StrEnum)


TOPIC_FIELDS = (
    *("MaximumMessageSize", "LoggingEnabled"),
    *("TopicName", "CreateTime", "LastModifyTime", "MessageRetentionPeriod", "MessageCount"),
)
SUBSCRIPTION_FIELDS = (
    *("Endpoint", "FilterTag", "NotifyStrategy", "NotifyContentFormat"),
    *("TopicOwner", "TopicName", "SubscriptionName", "Subscriber", "CreateTime", "LastModifyTime"),
)
"""In both the second line has answers, which a client may send back; they have no effect."""


async def create_topic(operations: Operations, call: Call) -> Answer:
    """CreateTopic, or SetTopicAttributes with `metaoverride=true`."""
    (name,) = call.names
    fields = known_fields(read_document(call.body, "Topic"), TOPIC_FIELDS) if call.body else {}
    attributes = TopicAttributes(
        message_bytes_max=integer_in(fields, "MaximumMessageSize"),
        is_logged=boolean_in(fields, "LoggingEnabled"),
    )
    if is_true(call.query.get("metaoverride")):
        await operations.topics.set_attributes(name, attributes)
        return Answer(204)
    return located(call, f"/topics/{name}", is_new=await operations.topics.create(name, attributes))


async def get_topic(operations: Operations, call: Call) -> Answer:
    """GetTopicAttributes."""
    row, messages = await operations.topics.describe(call.names[0])
    return answered(200, "Topic", {**_topic_fields(row), "MessageCount": messages})


async def delete_topic(operations: Operations, call: Call) -> Answer:
    """DeleteTopic."""
    await operations.topics.delete(call.names[0])
    return Answer(204)


async def list_topics(operations: Operations, call: Call) -> Answer:
    """ListTopic; with `x-mns-with-meta: true` each with its attributes, but without its count, which is expensive."""
    prefix, marker, limit = paging(call)
    page = await operations.topics.list(prefix=prefix, marker=marker, limit=limit)
    with_meta = is_true(call.headers.get("x-mns-with-meta"))
    items = [
        {"TopicURL": f"{call.host_url}/topics/{row.name}", **(_topic_fields(row) if with_meta else {})}
        for row in page.items
    ]
    return Answer(200, write_list("Topics", "Topic", items, {"NextMarker": page.next_token}))


async def publish(operations: Operations, call: Call) -> Answer:
    """PublishMessage. `MessageAttributes` is ignored: no subscribers by mail or telephone exist here."""
    fields = known_fields(read_document(call.body, "Message"), ("MessageBody", "MessageTag"), "MessageAttributes")
    message = await operations.topics.publish(
        call.names[0], fields.get("MessageBody", ""), fields.get("MessageTag") or None
    )
    return answered(201, "Message", {"MessageId": message.message_id, "MessageBodyMD5": message.body_md5})


async def subscribe(operations: Operations, call: Call) -> Answer:
    """Subscribe, or SetSubscriptionAttributes with `metaoverride=true`, which changes only the strategy."""
    topic, name = call.names
    fields = known_fields(read_document(call.body, "Subscription"), SUBSCRIPTION_FIELDS)
    strategy = _one_of(Strategy, "NotifyStrategy", fields)
    if is_true(call.query.get("metaoverride")):
        if strategy is None:
            raise InvalidArgument("NotifyStrategy is missing")
        await operations.subscriptions.set_strategy(topic, name, strategy)
        return Answer(204)
    attributes = SubscriptionAttributes(
        endpoint=fields.get("Endpoint", "").strip(),
        filter_tag=fields.get("FilterTag") or None,
        strategy=strategy or Strategy.BACKOFF,
        content_format=_one_of(ContentFormat, "NotifyContentFormat", fields) or ContentFormat.XML,
    )
    is_new = await operations.subscriptions.subscribe(topic, name, attributes)
    return located(call, f"/topics/{topic}/subscriptions/{name}", is_new=is_new)


async def get_subscription(operations: Operations, call: Call) -> Answer:
    """GetSubscriptionAttributes."""
    row = await operations.subscriptions.describe(*call.names)
    return answered(200, "Subscription", _subscription_fields(row))


async def unsubscribe(operations: Operations, call: Call) -> Answer:
    """Unsubscribe."""
    await operations.subscriptions.unsubscribe(*call.names)
    return Answer(204)


async def list_subscriptions(operations: Operations, call: Call) -> Answer:
    """ListSubscriptionByTopic."""
    (topic,) = call.names
    prefix, marker, limit = paging(call)
    page = await operations.subscriptions.list(topic, prefix=prefix, marker=marker, limit=limit)
    items = [{"SubscriptionURL": f"{call.host_url}/topics/{topic}/subscriptions/{row.name}"} for row in page.items]
    return Answer(200, write_list("Subscriptions", "Subscription", items, {"NextMarker": page.next_token}))


def _one_of(kind: type[E], name: str, fields: dict[str, str]) -> E | None:
    """The value of an element, None without the element; raises InvalidArgument."""
    given = fields.get(name, "").strip()
    if given and given not in list(kind):
        raise InvalidArgument(f"{name} must be {' or '.join(kind)}")
    return kind(given) if given else None


def _topic_fields(row: TopicRow) -> Fields:
    return {
        "TopicName": row.name,
        "CreateTime": row.created_at // 1000,
        "LastModifyTime": row.modified_at // 1000,
        "MaximumMessageSize": row.message_bytes_max,
        "MessageRetentionPeriod": RETENTION_SECONDS,
        "LoggingEnabled": row.is_logged,
    }


def _subscription_fields(row: SubscriptionRow) -> Fields:
    return {
        "TopicOwner": OWNER,
        "TopicName": row.topic,
        "SubscriptionName": row.name,
        "Subscriber": OWNER,
        "Endpoint": row.endpoint,
        "NotifyStrategy": row.strategy,
        "NotifyContentFormat": row.content_format,
        "FilterTag": row.filter_tag,
        "CreateTime": row.created_at // 1000,
        "LastModifyTime": row.modified_at // 1000,
    }
