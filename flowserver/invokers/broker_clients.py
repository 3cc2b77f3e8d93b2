"""The queues that brokers keep, and the clients that publish to them. Decides nothing about what is sent.

A broker takes part in no transaction. A message is published and confirmed before its step's reply is committed, under
an id derived from the attempt. After a crash the message may be published again; the broker drops the duplicate.
"""

from collections.abc import Mapping
from functools import partial

from flowserver.base.lazy_import import load
from flowserver.concurrency.threads import run_aside
from flowserver.invokers.brokers import CLIENTS, Access, Broker, BrokerMessage, Outlet


class Outlets:
    """Queues by name, each with its broker. A broker's client is loaded with the first message for it."""

    def __init__(self, outlets: Mapping[str, Outlet] | None = None) -> None:
        self._outlets = dict(outlets or {})
        self._brokers: dict[Access, Broker] = {}

    def __contains__(self, queue: object) -> bool:
        return queue in self._outlets

    async def send(self, queue: str, message: BrokerMessage) -> None:
        """Return once the queue's broker keeps the message.

        You can send it again without a duplicate for as long as the broker remembers its id. Raises KeyError for a
        queue that no broker keeps, QueueNotExist, BrokerUnavailable (it may have kept the message) and BrokerRefused.
        """
        outlet = self._outlets[queue]
        await (await self._broker(outlet.access)).publish(outlet, message)

    async def close(self) -> None:
        """Close all connections; publishes under way fail."""
        for broker in self._brokers.values():
            await broker.close()

    async def _broker(self, access: Access) -> Broker:
        client = CLIENTS[access.scheme]
        if access not in self._brokers:
            await run_aside(partial(load, client))
        if access not in self._brokers:  # another message may have loaded it meanwhile
            self._brokers[access] = load(client)(access)
        return self._brokers[access]
