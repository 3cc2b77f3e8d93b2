"""Sends messages to queues that a broker keeps. The database stores nothing of them."""

from collections.abc import Sequence

from flowserver.base.errors import InvalidArgument
from flowserver.invokers.broker_clients import Outlets
from flowserver.invokers.brokers import BrokerMessage
from flowserver.store.queues.message_writes import NewQueueMessage, new_message
from flowserver.store.queues.messages import QueueMessage

PRIORITY_HEADER = "Flowserver-Priority"
"""Brokers know no priorities; a receiver can read this header."""

TRACEPARENT_HEADER = "traceparent"


async def publish(outlets: Outlets, queue: str, messages: Sequence[NewQueueMessage], now_ms: int) -> list[QueueMessage]:
    """Send messages to the broker that keeps the queue; returns once it has confirmed all of them.

    The instants of the returned messages are those of sending; the broker decides how long it keeps them. Raises
    InvalidArgument for a delay, and the errors of `Outlets.send`, after which the broker may have some of the messages.
    """
    if any(each.delay_seconds for each in messages):
        raise InvalidArgument(f"queue {queue} is kept by a broker, which cannot delay messages")
    for each in messages:
        headers = {PRIORITY_HEADER: str(each.priority)}
        if each.traceparent:
            headers[TRACEPARENT_HEADER] = each.traceparent
        await outlets.send(queue, BrokerMessage(each.body.encode(), each.message_id, headers))
    return [new_message(each, now_ms) for each in messages]
