"""Subscriptions: where the messages of a topic are delivered."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from sqlalchemy import Connection

from flowserver.base.errors import (
    InternalServerError,
    InvalidArgument,
    ResourceThrottled,
    SubscriptionAlreadyExist,
    SubscriptionNotExist,
)
from flowserver.base.limits import Limits
from flowserver.engine.engine import Engine
from flowserver.invokers.endpoint_rules import check_url
from flowserver.machine.deliveries.destinations import (
    SUBSCRIBER_FORMS,
    NoDestination,
    TopicAddress,
    WebAddress,
    read_destination,
)
from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.pages import Page
from flowserver.operations.repeated_writes import is_own_row
from flowserver.operations.text_rules import check_no_nul
from flowserver.operations.topics import (
    check_tag,
    check_topic_name,
    drop_deliveries,
    no_topic,
    page_size,
    require_topic,
)
from flowserver.store.queues.topics import (
    SubscriptionRow,
    count_subscriptions,
    delete_subscription,
    find_subscription,
    hold_topic,
    insert_subscription,
    list_subscriptions,
    set_strategy,
)

ENDPOINT_CHARACTERS_MAX: Final = 2_048

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionAttributes:
    """Where and how messages are delivered. The endpoint is a URL, or names a queue or a function of this server."""

    endpoint: str
    filter_tag: str | None = None
    strategy: Strategy = Strategy.BACKOFF
    content_format: ContentFormat = ContentFormat.XML


class SubscriptionOperations:
    """Operations on subscriptions. All raise InvalidArgument; TopicNotExist those that need the topic."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("subscriptions.create", "topics/{topic}/subscriptions/{name}")
    async def subscribe(self, topic: str, name: str, attributes: SubscriptionAttributes) -> bool:
        """Create a subscription; False if it exists with the same attributes.

        Raises SubscriptionAlreadyExist, and ResourceThrottled if the topic has too many.
        """
        _check_names(topic, name)
        _check_subscription(attributes)
        now = self._engine.clock.now_ms()
        row = SubscriptionRow(
            topic=topic,
            name=name,
            endpoint=attributes.endpoint,
            filter_tag=attributes.filter_tag or None,
            strategy=attributes.strategy,
            content_format=attributes.content_format,
            created_at=now,
            modified_at=now,
        )
        found, is_new = await self._engine.committer.write_once(
            lambda connection, earlier: _subscribe(connection, earlier, row, self._engine.limits), by_caller=True
        )
        if replace(found, created_at=now, modified_at=now) != row:
            raise SubscriptionAlreadyExist(f"subscription {name} of topic {topic} exists with other attributes")
        return is_new

    @audited("subscriptions.update", "topics/{topic}/subscriptions/{name}")
    async def set_strategy(self, topic: str, name: str, strategy: Strategy) -> None:
        """Set the retry strategy of messages published from now on. Raises SubscriptionNotExist."""
        _check_names(topic, name)
        now = self._engine.clock.now_ms()
        if not await self._write(lambda connection: set_strategy(connection, topic, name, strategy, now)):
            raise _no_subscription(topic, name)

    async def describe(self, topic: str, name: str) -> SubscriptionRow:
        """A subscription; raises SubscriptionNotExist."""
        _check_names(topic, name)
        row = await self._engine.reader.ask(
            lambda connection: find_subscription(connection, topic, name), by_caller=True
        )
        if row is None:
            raise _no_subscription(topic, name)
        return row

    async def list(self, topic: str, *, prefix: str, marker: str, limit: int | None) -> Page[SubscriptionRow]:
        """A topic's subscriptions by name; the token is the name that the next page begins with."""
        check_topic_name(topic)
        size = page_size(limit)
        check_no_nul("the prefix", prefix + marker)

        def read(connection: Connection) -> list[SubscriptionRow]:
            require_topic(connection, topic)
            return list_subscriptions(connection, topic, prefix=prefix, from_name=marker, limit=size + 1)

        rows = await self._engine.slow_reads.ask(read)
        return Page(rows[:size], rows[size].name if len(rows) > size else None)

    @audited("subscriptions.delete", "topics/{topic}/subscriptions/{name}")
    async def unsubscribe(self, topic: str, name: str) -> None:
        """Delete a subscription and its undelivered messages. Deleting a missing subscription succeeds."""
        _check_names(topic, name)
        await self._write(lambda connection: delete_subscription(connection, topic, name))
        await drop_deliveries(self._engine, topic, name)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        return await self._engine.committer.write(change, by_caller=True)


def _subscribe(
    connection: Connection, earlier: tuple[SubscriptionRow, bool] | None, row: SubscriptionRow, limits: Limits
) -> tuple[SubscriptionRow, bool]:
    """Create the subscription; returns it, or the existing one, and whether it is new."""
    if hold_topic(connection, row.topic) is None:
        raise no_topic(row.topic)
    known = find_subscription(connection, row.topic, row.name)
    if known is not None:
        return known, is_own_row(row, known, earlier)
    if count_subscriptions(connection, row.topic) >= limits.topic_subscriptions_max:
        raise ResourceThrottled(f"topic {row.topic} has {limits.topic_subscriptions_max} subscriptions already")
    if insert_subscription(connection, row):
        return row, True
    known = find_subscription(connection, row.topic, row.name)  # another node was faster
    if known is None:  # and has deleted it
        raise InternalServerError
    return known, False


def _no_subscription(topic: str, name: str) -> SubscriptionNotExist:
    return SubscriptionNotExist(f"topic {topic} has no subscription {name}")


def _check_names(topic: str, name: str) -> None:
    check_topic_name(topic)
    check_topic_name(name, "a subscription's name")


def _check_subscription(attributes: SubscriptionAttributes) -> None:
    check_tag("the filter tag", attributes.filter_tag or "")
    if len(attributes.endpoint) > ENDPOINT_CHARACTERS_MAX:
        raise InvalidArgument(f"the endpoint must have at most {ENDPOINT_CHARACTERS_MAX} characters")
    try:
        destination = read_destination(attributes.endpoint)
    except NoDestination:
        raise InvalidArgument(f"the endpoint is no place to deliver to; write {SUBSCRIBER_FORMS}") from None
    if isinstance(destination, TopicAddress):
        raise InvalidArgument("the endpoint must not be a topic: messages could go round for ever")
    if isinstance(destination, WebAddress):
        check_url(attributes.endpoint, "the endpoint")
