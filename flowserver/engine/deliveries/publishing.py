"""Publishing: one commit finds who wants a message and adds a delivery for each of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from sqlalchemy import Connection

from flowserver.base.errors import FlowServerError, InvalidArgument, TopicNotExist
from flowserver.concurrency.coalescer import GROUP_MAX, Coalescer
from flowserver.engine.context import EngineContext
from flowserver.engine.deliveries.worker import DeliveryWorker
from flowserver.machine.deliveries.destinations import TopicAddress
from flowserver.machine.deliveries.notifications import digest_of
from flowserver.store.queues.deliveries import Delivery, NewDelivery
from flowserver.store.queues.topics import SubscriptionRow, TopicRow, hold_topic, subscriptions_for

PUBLISHED_AT_ONCE = 100
"""Messages published in one transaction: each is a row for every subscriber."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopicMessage:
    """A message to be published. A second one with the same id reaches only subscribers that do not have it yet."""

    message_id: str
    body: str
    tag: str | None = None
    traceparent: str | None = None
    """The span that publishes it, if that is traced."""


Publication = tuple[str, NewTopicMessage]
"""(topic, message)"""


class Publisher:
    """Publishes messages; `deliveries` brings them to the subscribers."""

    def __init__(self, context: EngineContext, deliveries: DeliveryWorker) -> None:
        self._deliveries = deliveries
        self._publications: Coalescer[Publication, str] = Coalescer(
            context.committer,
            self._publish,
            context.limits.pending_messages_max,
            weigh=lambda _: GROUP_MAX // PUBLISHED_AT_ONCE,
        )

    async def publish(self, topic: str, message: NewTopicMessage, *, by_caller: bool = False) -> str:
        """Publish a message; returns the MD5 of its body, as the service tells it.

        Raises TopicNotExist, InvalidArgument for a body that is too long, ResourceThrottled when `by_caller`.
        """
        digest = await self._publications.add((topic, message), by_caller=by_caller)
        self._deliveries.note_due()
        return digest

    def _publish(self, connection: Connection, publications: Sequence[Publication]) -> list[str | Exception]:
        """Publish all; returns for each the digest or its error. A topic and its subscribers are read once."""
        hold, subscriptions = cache(partial(hold_topic, connection)), cache(partial(subscriptions_for, connection))
        answers: list[str | Exception] = []
        for topic, message in publications:
            try:
                _check(topic, hold(topic), message.body)
            except FlowServerError as error:
                answers.append(error)
                continue
            wanting = subscriptions(topic, message.tag)
            self._deliveries.deliver_in(connection, [_delivery(each, message) for each in wanting])
            answers.append(digest_of(message.body))
        return answers

    def take_in(self, connection: Connection, address: TopicAddress, delivery: Delivery) -> Callable[[], None]:
        """Publish what a delivery brings; a receiver of `deliveries`."""
        message = NewTopicMessage(
            message_id=delivery.message_id, body=delivery.body, tag=delivery.tag, traceparent=delivery.traceparent
        )
        (digest,) = self._publish(connection, [(address.topic, message)])
        if isinstance(digest, Exception):
            raise digest
        return self._deliveries.note_due


def _check(name: str, topic: TopicRow | None, body: str) -> None:
    """Raise what keeps the body from being published."""
    if topic is None:
        raise TopicNotExist(f"topic {name} does not exist")
    size = len(body.encode())
    if size > topic.message_bytes_max:
        raise InvalidArgument(f"the body has {size} bytes, and topic {name} takes {topic.message_bytes_max} at most")


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
        traceparent=message.traceparent,
    )
