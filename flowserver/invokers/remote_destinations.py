"""Brings deliveries to places outside this server: HTTP endpoints, and queues that brokers keep."""

import asyncio
from typing import Protocol

from flowserver.base.errors import FlowServerError
from flowserver.invokers.broker_clients import Outlets
from flowserver.invokers.brokers import BrokerMessage
from flowserver.invokers.calls import Failed, Reply
from flowserver.invokers.web_requests import WebRequest
from flowserver.machine.deliveries.destinations import Destination, QueueAddress, WebAddress
from flowserver.machine.deliveries.notifications import TRACEPARENT_HEADER, Notification

WEB_SECONDS = 5.0
"""An endpoint that has not answered by then has not taken the message."""

BROKER_SECONDS = 8.0
"""The same of a broker, independently of its queue's setting: the attempt must end before its claim does."""

TAG_HEADER = "Flowserver-Tag"


class NotSent(Exception):
    """The server could send nothing, so there was no attempt."""


class WebSender(Protocol):
    """Who makes requests to the outside."""

    async def send(self, request: WebRequest) -> Reply | Failed:
        """Make the request; Failed only if no reply came."""
        ...


class Senders:
    """The ways out of this server."""

    def __init__(self, sender: WebSender, outlets: Outlets) -> None:
        self._sender = sender
        self._outlets = outlets

    def leads_to(self, destination: Destination) -> bool:
        """Whether the destination is outside."""
        return isinstance(destination, WebAddress) or (
            isinstance(destination, QueueAddress) and destination.queue in self._outlets
        )

    async def bring(self, notification: Notification, destination: Destination) -> str | None:
        """Bring it there; None if it has arrived, else why it has not, or perhaps has not. Raises NotSent."""
        if isinstance(destination, WebAddress):
            return await self._post(notification, destination)
        assert isinstance(destination, QueueAddress)
        tag = notification.published.tag
        headers = {} if tag is None or not tag.isascii() else {TAG_HEADER: tag}
        if notification.traceparent is not None:
            headers[TRACEPARENT_HEADER] = notification.traceparent
        message = BrokerMessage(notification.content.encode(), notification.arrived_id, headers)
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                await self._outlets.send(destination.queue, message)
        except TimeoutError:
            return f"the broker did not confirm it in {BROKER_SECONDS:g} s"
        except FlowServerError as error:
            return f"{error.code}: {error.message}"
        return None

    async def _post(self, notification: Notification, address: WebAddress) -> str | None:
        content = notification.content.encode()
        named = notification.arrived_id
        request = WebRequest("POST", address.url, WEB_SECONDS, notification.headers, content, message_id=named)
        reply = await self._sender.send(request)
        if isinstance(reply, Failed):
            if reply.is_own:
                raise NotSent(reply.cause)
            return reply.cause
        return None if 200 <= reply.status < 300 else f"it answered {reply.status}"
