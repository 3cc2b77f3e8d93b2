"""Publishing: one commit finds who wants a message and adds a delivery for each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument, TopicNotExist
from flowserver.engine.commit.committer import Committer
from flowserver.engine.deliveries.worker import Deliveries
from flowserver.machine.deliveries.destinations import TopicAddress
from flowserver.machine.deliveries.notifications import digest_of
from flowserver.store.queues.deliveries import Delivery, NewDelivery
from flowserver.store.queues.topics import SubscriptionRow, TopicRow, hold_topic, subscriptions_for


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopicMessage:
    """A message to be published. One with the same id again reaches only those who have not got it yet."""

    message_id: str
    body: str
    tag: str | None = None


class Topics:
    """Publishes messages; `deliveries` brings them to the subscribers."""

    def __init__(self, committer: Committer, deliveries: Deliveries) -> None:
        self._committer = committer
        self._deliveries = deliveries

    async def publish(self, topic: str, message: NewTopicMessage, *, bounded: bool = False) -> str:
        """Publish a message; returns the MD5 of its body, as the service tells it.

        Raises TopicNotExist, InvalidArgument for a body that is too long, ResourceThrottled when `bounded`.
        """
        change = partial(self.publish_in, topic=topic, message=message)
        digest = await self._committer.write(change, bounded=bounded)
        self._deliveries.note_due()
        return digest

    def publish_in(self, connection: Connection, topic: str, message: NewTopicMessage) -> str:
        """The same as part of another change; call `deliveries.note_due` once that is durable."""
        row = hold_topic(connection, topic)
        if row is None:
            raise TopicNotExist(f"topic {topic} does not exist")
        _check_size(row, message.body)
        wanting = subscriptions_for(connection, topic, message.tag)
        self._deliveries.deliver_in(connection, [_delivery(each, message) for each in wanting])
        return digest_of(message.body)

    def take_in(self, connection: Connection, address: TopicAddress, delivery: Delivery) -> Callable[[], None]:
        """Publish what a delivery brings; an inlet of `deliveries`."""
        message = NewTopicMessage(message_id=delivery.message_id, body=delivery.body, tag=delivery.tag)
        self.publish_in(connection, address.topic, message)
        return self._deliveries.note_due


def _check_size(topic: TopicRow, body: str) -> None:
    size = len(body.encode())
    if size > topic.message_bytes_max:
        raise InvalidArgument(
            f"the body has {size} bytes, and topic {topic.name} takes {topic.message_bytes_max} at most"
        )


def _delivery(subscription: SubscriptionRow, message: NewTopicMessage) -> NewDelivery:
    return NewDelivery(
        delivery_id=f"{subscription.topic}/{subscription.name}/{message.message_id}",
        target=subscription.endpoint,
        message_id=message.message_id,
        body=message.body,
        tag=message.tag,
        strategy=subscription.strategy,
        content_format=subscription.content_format,
        topic=subscription.topic,
        subscription=subscription.name,
    )
