"""Where deliveries come in at destinations of this server: each as part of the commit that deletes the delivery."""

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from uuid import UUID, uuid5

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.engine.invocations.invocations import Invocations
from flowserver.engine.queues.queues import Queues
from flowserver.machine.deliveries.destinations import FunctionAddress, QueueAddress
from flowserver.machine.deliveries.notifications import content_of
from flowserver.store.invocations.submissions import NewInvocation
from flowserver.store.queues.deliveries import Delivery, published_by
from flowserver.store.queues.writes import NewQueueMessage

_IDS = UUID("1a3b7a52-5b0a-5d0e-8f2b-0c7d6c1e4b11")
"""Name space of the ids made from those of deliveries; any fixed value does."""


def arrived_id(delivery: Delivery) -> str:
    """The id of what a delivery becomes where it arrives; the same for the same delivery."""
    return uuid5(_IDS, delivery.delivery_id).hex.upper()


def written(delivery: Delivery) -> str:
    """What a delivery brings, in the format that was asked for."""
    return content_of(published_by(delivery), delivery.content_format)


class QueueReceiver:
    """Sends what a delivery brings to a queue.

    Results of invocations are written in Base64 if `is_encoding`, as the messages of task steps are. What is published
    to a topic is left as its publisher wrote it, since the same text goes to other subscribers, too.
    """

    def __init__(self, queues: Queues, clock: Clock, *, is_encoding: bool) -> None:
        self._queues = queues
        self._clock = clock
        self._is_encoding = is_encoding

    def __call__(self, connection: Connection, address: QueueAddress, delivery: Delivery) -> Callable[[], None]:
        """Raises QueueNotExist, and InvalidArgument if the queue takes no messages of that length."""
        body = written(delivery)
        if self._is_encoding and not delivery.topic:
            body = b64encode(body.encode()).decode()
        message = NewQueueMessage(message_id=arrived_id(delivery), body=body)
        self._queues.send_in(connection, address.queue, [message], self._clock.now_ms())
        return partial(self._queues.note_sent, address.queue, 1)


class FunctionReceiver:
    """Has a function invoked with what a delivery brings."""

    def __init__(self, invocations: Invocations) -> None:
        self._invocations = invocations

    def __call__(self, connection: Connection, address: FunctionAddress, delivery: Delivery) -> Callable[[], None]:
        """Raises ServiceNotFound and FunctionNotFound."""
        request_id = str(UUID(arrived_id(delivery)))
        new = NewInvocation(
            service=address.service,
            qualifier=address.qualifier,
            function=address.function,
            payload=written(delivery).encode(),
            invocation_key=request_id,
            request_id=request_id,
        )
        return partial(self._invocations.take_up, [self._invocations.submit_in(connection, new)])
