"""The tables of queues, topics and deliveries, and their indexes.

Instants are integer ms since the epoch, as in `tables`.
"""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text, text

from flowserver.store.schema.metadata import Name, metadata, partial_index, required

queues = Table(
    "queues",
    metadata,
    Column("name", Name, primary_key=True),
    *required(
        Integer, "delay_seconds", "message_bytes_max", "retention_seconds", "visibility_seconds", "polling_seconds"
    ),
    Column("is_logged", Boolean, nullable=False),
    *required(BigInteger, "created_at", "modified_at"),
)
"""Queues and their attributes."""

IS_READY = text("is_ready")
NOT_READY = text("NOT is_ready")

queue_messages = Table(
    "queue_messages",
    metadata,
    Column("queue", Name, primary_key=True),
    Column("message_id", Name, primary_key=True),
    *required(Text, "body", "body_md5"),
    Column("priority", Integer, nullable=False),
    Column("is_ready", Boolean, nullable=False),
    *required(BigInteger, "visible_at", "enqueued_at", "expires_at"),
    Column("first_dequeued_at", BigInteger),
    Column("dequeue_count", Integer, nullable=False),
    Column("receipt", Text),
    Column("traceparent", Text),
)
"""Messages of queues, until they are deleted or expire. Ids rise with time.

`is_ready` is an index of what can be received: a delayed or received message is not ready until `visible_at` has passed
and a receive has noticed that. `receipt` is the handle from the last receive; no other handle is valid.
`traceparent` names the span that sent it, if that was traced.
"""
partial_index(
    "ix_queue_messages_ready",
    queue_messages.c.queue,
    queue_messages.c.priority,
    queue_messages.c.enqueued_at,
    queue_messages.c.message_id,
    where=IS_READY,
)
partial_index("ix_queue_messages_visible_at", queue_messages.c.queue, queue_messages.c.visible_at, where=NOT_READY)
Index("ix_queue_messages_expires_at", queue_messages.c.expires_at)

topics = Table(
    "topics",
    metadata,
    Column("name", Name, primary_key=True),
    Column("message_bytes_max", Integer, nullable=False),
    Column("is_logged", Boolean, nullable=False),
    *required(BigInteger, "created_at", "modified_at"),
)
"""Topics and their attributes."""

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("topic", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("endpoint", Text, nullable=False),
    Column("filter_tag", Text),
    *required(Text, "strategy", "content_format"),
    *required(BigInteger, "created_at", "modified_at"),
)
"""Where and how the messages of topics are delivered."""

deliveries = Table(
    "deliveries",
    metadata,
    Column("delivery_id", Text, primary_key=True),
    Column("target", Text, nullable=False),
    Column("target_key", Name, nullable=False),
    *required(Text, "strategy", "content_format", "topic", "subscription"),
    Column("invocation_key", Text),
    Column("message_id", Text, nullable=False),
    Column("tag", Text),
    Column("body", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("wake_at", BigInteger, nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("traceparent", Text),
    Index("ix_deliveries_subscription", "topic", "subscription"),
    Index("ix_deliveries_target_key", "target_key", "wake_at"),
)
"""Deliveries that have not arrived: messages of topics to their subscribers, results of invocations to their
destinations (`invocation_key`). A row is written in the transaction that caused it, and deleted when the delivery has
arrived or was given up.

`wake_at` is the instant of the next attempt; a node moves it on before it tries, so that the attempt is repeated if
the node dies. `target_key` is a digest of the target; its index finds or skips all deliveries to one target.
"""
