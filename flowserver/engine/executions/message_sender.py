"""Sends the messages of task steps to queues and topics. Knows no executions.

A message's id follows from the attempt that sends it, so sending it again after a crash leaves one message, until the
message is deleted.
"""

from base64 import b64encode
from typing import Literal
from uuid import NAMESPACE_OID, uuid5

from flowserver.base.errors import FlowServerError, InvalidArgument
from flowserver.base.json_values import JsonObject
from flowserver.base.xml_characters import NOT_IN_XML
from flowserver.engine.commit.retry import retry_until_available
from flowserver.engine.deliveries.publishing import NewTopicMessage, Publisher
from flowserver.engine.queues.queues import Queues, new_receipt
from flowserver.invokers.broker_clients import Outlets
from flowserver.language.graph import QueueTarget, TopicTarget
from flowserver.language.targets import DELAY_SECONDS, MESSAGE_TAG, PRIORITY
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.service_params import message_body
from flowserver.store.queues.writes import PRIORITY_DEFAULT, NewQueueMessage

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

    async def send(self, target: QueueTarget | TopicTarget, command: InvokeTask) -> Result:
        """Send a message; returns its ids, or `MNS.` and the code of what was wrong."""
        try:
            if isinstance(target, QueueTarget):
                digest = await self._send(target.queue, command)
            else:
                digest = await self._publish(target.topic, command)
        except FlowServerError as error:
            return Failure.of(error, _OWNER)
        return Success(_reply(command, digest))

    async def _send(self, queue: str, command: InvokeTask) -> str:
        params = command.params or {}
        priority = params.get(PRIORITY)
        message = NewQueueMessage(
            message_id=_message_id(command),
            body=self._encoded(queue, message_body(params)),
            delay_seconds=params.get(DELAY_SECONDS),
            priority=PRIORITY_DEFAULT if priority is None else priority,
            receipt=new_receipt(),
        )
        (sent,) = await retry_until_available(lambda: self._queues.send(queue, [message]))
        return sent.body_md5

    async def _publish(self, topic: str, command: InvokeTask) -> str:
        """Attributes of the message are left out: they are for kinds of subscribers that this server does not have."""
        params = command.params or {}
        body = _checked_body(message_body(params))
        message = NewTopicMessage(message_id=_message_id(command), body=body, tag=_checked_tag(params.get(MESSAGE_TAG)))
        return await retry_until_available(lambda: self._topics.publish(topic, message))

    def _encoded(self, queue: str, body: str) -> str:
        if queue in self._outlets:
            return body
        return b64encode(body.encode()).decode() if self._queue_bodies == "base64" else _checked_body(body)


def _message_id(command: InvokeTask) -> str:
    return uuid5(NAMESPACE_OID, command.submission_key).hex.upper()


def _reply(command: InvokeTask, body_md5: str) -> JsonObject:
    """The reply of the service. Its request id is for logs only."""
    request_id = str(uuid5(NAMESPACE_OID, f"{command.submission_key}#request")).upper()
    return {"MessageId": _message_id(command), "RequestId": request_id, "MessageBodyMD5": body_md5}


def _checked_body(body: str) -> str:
    """The body; raises InvalidArgument for a character that the XML of a receive cannot hold."""
    if found := NOT_IN_XML.search(body):
        raise InvalidArgument(f"MessageBody holds the character U+{ord(found[0]):04X}, which no message can")
    return body


def _checked_tag(tag: str | None) -> str | None:
    """The tag; raises InvalidArgument for a character that an HTTP header cannot hold."""
    if tag is not None and not tag.isprintable():
        raise InvalidArgument("MessageTag must be printable")
    return tag
