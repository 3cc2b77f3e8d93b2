"""Topics, their subscriptions, and publishing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

import uuid_utils
from sqlalchemy import Connection

from flowserver.base.errors import (
    InternalServerError,
    InvalidArgument,
    TopicAlreadyExist,
    TopicNotExist,
)
from flowserver.base.limits import Limits
from flowserver.base.names import QUEUE_NAME, QUEUE_NAME_CHARACTERS_MAX
from flowserver.engine.deliveries.publishing import NewTopicMessage
from flowserver.engine.engine import Engine
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.pages import Page
from flowserver.operations.queues import check_depths
from flowserver.operations.repeated_writes import is_own_row
from flowserver.operations.span_links import traceparent_of_request
from flowserver.operations.text_rules import check_no_nul
from flowserver.store.queues.deliveries import count_undelivered_messages, delete_deliveries_of
from flowserver.store.queues.depths import undelivered_of_topics
from flowserver.store.queues.topics import (
    TopicRow,
    delete_topic,
    find_topic,
    insert_topic,
    list_topics,
    update_topic,
)
from flowserver.store.sql.bounded_counts import Count

MESSAGE_BYTES_MIN: Final = 1_024
TAG_CHARACTERS_MAX: Final = 16
LIST_MAX: Final = 1_000
DELETED_AT_ONCE: Final = 1_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAttributes:
    """Attributes of a topic as a caller gives them; None for those left out. `is_logged` has no effect."""

    message_bytes_max: int | None = None
    is_logged: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMessage:
    """The reply to a publish; `body_md5` in upper case."""

    message_id: str
    body_md5: str


class TopicOperations:
    """Operations on topics. All raise InvalidArgument; TopicNotExist those that need the topic."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("topics.create", "topics/{name}")
    async def create(self, name: str, attributes: TopicAttributes) -> bool:
        """Create a topic; False if it exists with the same attributes. Raises TopicAlreadyExist."""
        limits = self._engine.limits
        check_topic_name(name)
        _check_size(attributes, limits)
        now = self._engine.clock.now_ms()
        row = TopicRow(
            name=name,
            message_bytes_max=attributes.message_bytes_max or limits.queue_message_bytes_max,
            is_logged=attributes.is_logged or False,
            created_at=now,
            modified_at=now,
        )
        found, is_new = await self._engine.committer.write_once(
            lambda connection, earlier: _create(connection, earlier, row), by_caller=True
        )
        if replace(found, created_at=now, modified_at=now) != row:
            raise TopicAlreadyExist(f"topic {name} exists with other attributes")
        return is_new

    @audited("topics.update", "topics/{name}")
    async def set_attributes(self, name: str, attributes: TopicAttributes) -> None:
        """Change the attributes that are given."""
        check_topic_name(name)
        _check_size(attributes, self._engine.limits)
        given = {"message_bytes_max": attributes.message_bytes_max, "is_logged": attributes.is_logged}
        changed = {field: value for field, value in given.items() if value is not None}
        now = self._engine.clock.now_ms()
        if not await self._write(lambda connection: update_topic(connection, name, changed, now)):
            raise no_topic(name)

    async def describe(self, name: str) -> tuple[TopicRow, int]:
        """A topic, and how many of its messages are not yet delivered to all their subscribers."""
        check_topic_name(name)
        return await self._engine.slow_reads.ask(
            lambda connection: (require_topic(connection, name), count_undelivered_messages(connection, name))
        )

    async def list(self, *, prefix: str, marker: str, limit: int | None) -> Page[TopicRow]:
        """Topics by name; the token is the name that the next page begins with."""
        size = page_size(limit)
        check_no_nul("the prefix", prefix + marker)
        rows = await self._engine.slow_reads.ask(partial(list_topics, prefix=prefix, from_name=marker, limit=size + 1))
        return Page(rows[:size], rows[size].name if len(rows) > size else None)

    async def depths(self, names: Sequence[str]) -> dict[str, Count]:
        """How many deliveries of each of DEPTHS_MAX topics at most have not arrived; raises InvalidArgument."""
        check_depths(len(names))
        return await self._engine.slow_reads.ask(partial(undelivered_of_topics, names=names))

    @audited("topics.delete", "topics/{name}")
    async def delete(self, name: str) -> None:
        """Delete a topic, its subscriptions and its undelivered messages. Deleting a missing topic succeeds."""
        check_topic_name(name)
        await self._write(partial(delete_topic, name=name))
        await drop_deliveries(self._engine, name, None)

    @audited("topics.publish", "topics/{topic}")
    async def publish(self, topic: str, body: str, tag: str | None = None) -> PublishedMessage:
        """Publish a message. Raises ResourceThrottled, DiskAlmostFull."""
        check_topic_name(topic)
        if not body:
            raise InvalidArgument("the body is missing")
        check_no_nul("the body", body)
        check_tag("the tag", tag or "")
        message = NewTopicMessage(
            message_id=uuid_utils.uuid7().hex.upper(), body=body, tag=tag or None, traceparent=traceparent_of_request()
        )
        self._engine.disk.require()
        digest = await self._engine.topics.publish(topic, message, by_caller=True)
        return PublishedMessage(message_id=message.message_id, body_md5=digest)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        return await self._engine.committer.write(change, by_caller=True)


def _create(connection: Connection, earlier: tuple[TopicRow, bool] | None, row: TopicRow) -> tuple[TopicRow, bool]:
    """Create the topic; returns it, or the existing one, and whether it is new."""
    if insert_topic(connection, row):
        return row, True
    known = find_topic(connection, row.name)
    if known is None:  # another node has just deleted it
        raise InternalServerError
    return known, is_own_row(row, known, earlier)


def require_topic(connection: Connection, name: str) -> TopicRow:
    """The topic; raises TopicNotExist."""
    row = find_topic(connection, name)
    if row is None:
        raise no_topic(name)
    return row


def no_topic(name: str) -> TopicNotExist:
    """The error for a missing topic."""
    return TopicNotExist(f"topic {name} does not exist")


def page_size(limit: int | None) -> int:
    """How many to list; raises InvalidArgument."""
    size = LIST_MAX if limit is None else limit
    if not 1 <= size <= LIST_MAX:
        raise InvalidArgument(f"the number to return must be from 1 to {LIST_MAX}")
    return size


def check_topic_name(name: str, what: str = "a topic's name") -> None:
    """Raises InvalidArgument; names of subscriptions follow the same rule."""
    if not QUEUE_NAME.match(name) or len(name) > QUEUE_NAME_CHARACTERS_MAX:
        rule = f"has 1 to {QUEUE_NAME_CHARACTERS_MAX} letters, digits or hyphens, and begins with a letter or a digit"
        raise InvalidArgument(f"{what} {rule}")


def _check_size(attributes: TopicAttributes, limits: Limits) -> None:
    size = attributes.message_bytes_max
    if size is not None and not MESSAGE_BYTES_MIN <= size <= limits.queue_message_bytes_max:
        raise InvalidArgument(
            f"the maximum message size must be from {MESSAGE_BYTES_MIN} to {limits.queue_message_bytes_max}"
        )


def check_tag(what: str, tag: str) -> None:
    """Raises InvalidArgument. Tags are sent in headers, so they must be printable and a single line."""
    if len(tag) > TAG_CHARACTERS_MAX or not tag.isprintable():
        raise InvalidArgument(f"{what} must have at most {TAG_CHARACTERS_MAX} printable characters")


async def drop_deliveries(engine: Engine, topic: str, subscription: str | None) -> None:
    """Delete the undelivered messages of a subscription, or of all the topic's if None, in small batches.

    Deliveries that a crash leaves behind are delivered or given up as usual.
    """
    dropping = partial(delete_deliveries_of, topic=topic, subscription=subscription, limit=DELETED_AT_ONCE)
    while await engine.committer.write(dropping, by_caller=True) == DELETED_AT_ONCE:
        pass
