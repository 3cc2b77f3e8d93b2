"""Topics and their subscriptions."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, or_, select, update

from flowserver.machine.deliveries.notifications import ContentFormat
from flowserver.machine.deliveries.retry_strategies import Strategy
from flowserver.store.schema.queue_tables import subscriptions, topics
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import rows_with_texts
from flowserver.store.sql.upserts import insert_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic; instants in ms."""

    name: str
    message_bytes_max: int
    is_logged: bool
    created_at: int
    modified_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow:
    """Where and how messages of a topic are delivered; instants in ms."""

    topic: str
    name: str
    endpoint: str
    filter_tag: str | None
    """Only messages with this tag are delivered; None for all."""
    strategy: Strategy
    content_format: ContentFormat
    created_at: int
    modified_at: int


def insert_topic(connection: Connection, row: TopicRow) -> bool:
    """Create a topic; False if the name is taken."""
    statement = insert_of(connection)(topics).values(**asdict(row))
    added = statement.on_conflict_do_nothing().returning(topics.c.name)
    return connection.execute(added).one_or_none() is not None


def find_topic(connection: Connection, name: str) -> TopicRow | None:
    """The topic with that name."""
    rows = fetch_rows(connection, _FIND, {"named": name})
    return _topic(rows[0]) if rows else None


def hold_topic(connection: Connection, name: str) -> TopicRow | None:
    """The topic with that name, protected from deletion until the transaction ends; others may hold it too."""
    rows = fetch_rows(connection, _HOLD, {"named": name})
    return _topic(rows[0]) if rows else None


def list_topics(connection: Connection, *, prefix: str, from_name: str, limit: int) -> list[TopicRow]:
    """Topics whose names begin with `prefix`, by name, from `from_name` on."""
    # Not LIKE, which ignores case on SQLite.
    named_so = func.substr(topics.c.name, 1, len(prefix)) == prefix
    page = select(topics).where(topics.c.name >= max(prefix, from_name), named_so).order_by(topics.c.name)
    return [_topic(row) for row in rows_with_texts(connection, page, limit, "name")]


def update_topic(connection: Connection, name: str, changed: dict[str, Any], now_ms: int) -> bool:
    """Set attributes, by the names of their columns; False if there is no such topic."""
    statement = update(topics).where(topics.c.name == name).values(**changed, modified_at=now_ms)
    return connection.execute(statement).rowcount > 0


def delete_topic(connection: Connection, name: str) -> None:
    """Delete the topic and its subscriptions, but not their deliveries."""
    connection.execute(delete(topics).where(topics.c.name == name))
    connection.execute(delete(subscriptions).where(subscriptions.c.topic == name))


def insert_subscription(connection: Connection, row: SubscriptionRow) -> bool:
    """Create a subscription; False if the topic has one with that name."""
    statement = insert_of(connection)(subscriptions).values(**asdict(row))
    added = statement.on_conflict_do_nothing().returning(subscriptions.c.name)
    return connection.execute(added).one_or_none() is not None


def find_subscription(connection: Connection, topic: str, name: str) -> SubscriptionRow | None:
    """The topic's subscription with that name."""
    row = connection.execute(select(subscriptions).where(_key(topic, name))).one_or_none()
    return None if row is None else _subscription(row)


def subscriptions_for(connection: Connection, topic: str, tag: str | None) -> list[SubscriptionRow]:
    """The topic's subscriptions that receive messages with that tag."""
    return [_subscription(row) for row in fetch_rows(connection, _FOR, {"of": topic, "tagged": tag})]


def list_subscriptions(
    connection: Connection, topic: str, *, prefix: str, from_name: str, limit: int
) -> list[SubscriptionRow]:
    """A topic's subscriptions by name, like `list_topics`."""
    ours = subscriptions.c
    named_so = func.substr(ours.name, 1, len(prefix)) == prefix
    page = select(subscriptions).where(ours.topic == topic, ours.name >= max(prefix, from_name), named_so)
    return [_subscription(row) for row in rows_with_texts(connection, page.order_by(ours.name), limit, "name")]


def count_subscriptions(connection: Connection, topic: str) -> int:
    """How many subscriptions the topic has."""
    query = select(func.count()).select_from(subscriptions).where(subscriptions.c.topic == topic)
    return connection.execute(query).scalar_one()


def set_strategy(connection: Connection, topic: str, name: str, strategy: Strategy, now_ms: int) -> bool:
    """Change the retry strategy for new messages; False if there is no such subscription."""
    statement = update(subscriptions).where(_key(topic, name)).values(strategy=strategy, modified_at=now_ms)
    return connection.execute(statement).rowcount > 0


def delete_subscription(connection: Connection, topic: str, name: str) -> None:
    """Delete the subscription but not its deliveries."""
    connection.execute(delete(subscriptions).where(_key(topic, name)))


def _key(topic: str, name: str) -> Any:
    return (subscriptions.c.topic == topic) & (subscriptions.c.name == name)


def _topic(row: Any) -> TopicRow:
    fields = row._asdict()
    return TopicRow(**{**fields, "is_logged": bool(fields["is_logged"])})


def _subscription(row: Any) -> SubscriptionRow:
    fields = row._asdict()
    # A damaged value is read as the default: one subscription must not keep others from getting messages.
    strategy = Strategy(fields["strategy"]) if fields["strategy"] in _STRATEGIES else Strategy.BACKOFF
    known_format = fields["content_format"] in _FORMATS
    content_format = ContentFormat(fields["content_format"]) if known_format else ContentFormat.XML
    return SubscriptionRow(**{**fields, "strategy": strategy, "content_format": content_format})


_STRATEGIES = frozenset(Strategy)
_FORMATS = frozenset(ContentFormat)

_FIND = select(topics).where(topics.c.name == bindparam("named"))
_HOLD = _FIND.with_for_update(read=True, key_share=True)
_FOR = (
    select(subscriptions)
    .where(
        subscriptions.c.topic == bindparam("of"),
        or_(subscriptions.c.filter_tag.is_(None), subscriptions.c.filter_tag == bindparam("tagged")),
    )
    .order_by(subscriptions.c.name)
)
