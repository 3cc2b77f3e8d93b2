"""Sends the messages of task steps to queues and topics (`machine/sent_messages.py`). Knows no executions."""

from base64 import b64encode
from typing import Literal

from flowserver.base.errors import FlowServerError
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.deliveries.publishing import NewTopicMessage, Publisher
from flowserver.engine.queues.queues import Queues, new_receipt
from flowserver.invokers.broker_clients import Outlets
from flowserver.language.graph import QueueTarget, TopicTarget
from flowserver.language.targets import DELAY_SECONDS, MESSAGE_TAG, PRIORITY
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.sent_messages import checked_body, checked_tag, message_body, message_id, reply_of
from flowserver.store.queues.message_writes import PRIORITY_DEFAULT, NewQueueMessage

_OWNER = "MNS"

QueueBodies = Literal["base64", "plain"]
"""How the bodies of messages to queues are encoded. The service's SDKs decode Base64 by default."""


class MessageSender:
    """Sends to queues and topics of this server, and to queues that brokers keep: there, bodies are always plain."""

    def __init__(self, queues: Queues, topics: Publisher, outlets: Outlets, queue_bodies: QueueBodies) -> None:
        self._queues = queues
        self._topics = topics
        self._outlets = outlets
        self._queue_bodies = queue_bodies

    async def send(self, target: QueueTarget | TopicTarget, command: InvokeTask, traceparent: str = "") -> Result:
        """Send a message; returns its ids, or `MNS.` and the code of what was wrong."""
        try:
            if isinstance(target, QueueTarget):
                digest = await self._send(target.queue, command, traceparent)
            else:
                digest = await self._publish(target.topic, command, traceparent)
        except FlowServerError as error:
            return Failure.of(error, _OWNER)
        return Success(reply_of(command, digest))

    async def _send(self, queue: str, command: InvokeTask, traceparent: str) -> str:
        params = command.params or {}
        priority = params.get(PRIORITY)
        message = NewQueueMessage(
            message_id=message_id(command),
            body=self._encoded(queue, message_body(params)),
            delay_seconds=params.get(DELAY_SECONDS),
            priority=PRIORITY_DEFAULT if priority is None else priority,
            receipt=new_receipt(),
            traceparent=traceparent,
        )
        (sent,) = await retry_until_available(lambda: self._queues.send(queue, [message]))
        return sent.body_md5

    async def _publish(self, topic: str, command: InvokeTask, traceparent: str) -> str:
        """Attributes of the message are left out: they are for kinds of subscribers that this server does not have."""
        params = command.params or {}
        body = checked_body(message_body(params))
        message = NewTopicMessage(
            message_id=message_id(command),
            body=body,
            tag=checked_tag(params.get(MESSAGE_TAG)),
            traceparent=traceparent or None,
        )
        return await retry_until_available(lambda: self._topics.publish(topic, message))

    def _encoded(self, queue: str, body: str) -> str:
        if queue in self._outlets:
            return body
        return b64encode(body.encode()).decode() if self._queue_bodies == "base64" else checked_body(body)
