"""Where deliveries come in at destinations of this server: each as part of the commit that deletes the delivery."""

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.engine.invocations.invocations import Invocations
from flowserver.engine.queues.queues import Queues
from flowserver.machine.deliveries.destinations import FunctionAddress, QueueAddress
from flowserver.store.invocations.submissions import NewInvocation
from flowserver.store.queues.deliveries import Delivery
from flowserver.store.queues.message_writes import NewQueueMessage


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
        body = delivery.notification.content
        if self._is_encoding and not delivery.topic:
            body = b64encode(body.encode()).decode()
        message = NewQueueMessage(
            message_id=delivery.notification.arrived_id, body=body, traceparent=delivery.traceparent or ""
        )
        self._queues.send_in(connection, address.queue, [message], self._clock.now_ms())
        return partial(self._queues.note_sent, address.queue, 1)


class FunctionReceiver:
    """Has a function invoked with what a delivery brings."""

    def __init__(self, invocations: Invocations) -> None:
        self._invocations = invocations

    def __call__(self, connection: Connection, address: FunctionAddress, delivery: Delivery) -> Callable[[], None]:
        """Raises ServiceNotFound and FunctionNotFound."""
        request_id = str(UUID(delivery.notification.arrived_id))
        new = NewInvocation(
            service=address.service,
            qualifier=address.qualifier,
            function=address.function,
            payload=delivery.notification.content.encode(),
            invocation_key=request_id,
            request_id=request_id,
            traceparent=delivery.traceparent,
        )
        return partial(self._invocations.take_up, [self._invocations.submit_in(connection, new)])
