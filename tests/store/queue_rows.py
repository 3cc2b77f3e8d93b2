"""Valid queues and messages for tests, which change only the values that they test."""

from typing import Any

from sqlalchemy import Connection

from flowserver.store.queues.messages import QueueMessage, send_messages
from flowserver.store.queues.queues import QueueRow, insert_queue

NOW = 1_000_000


def queue_row(name: str = "q", **changes: Any) -> QueueRow:
    values: dict[str, Any] = {
        "name": name,
        "delay_seconds": 0,
        "message_bytes_max": 65_536,
        "retention_seconds": 3_600,
        "visibility_seconds": 30,
        "polling_seconds": 0,
        "is_logged": False,
        "created_at": 1,
        "modified_at": 1,
    }
    return QueueRow(**{**values, **changes})


def queue_message(message_id: str, **changes: Any) -> QueueMessage:
    values: dict[str, Any] = {
        "message_id": message_id,
        "body": f"body of {message_id}",
        "body_md5": "00",
        "priority": 8,
        "visible_at": NOW,
        "enqueued_at": NOW,
        "expires_at": NOW + 1_000_000,
        "first_dequeued_at": None,
        "dequeue_count": 0,
        "receipt": None,
    }
    return QueueMessage(**{**values, **changes})


def keep_queue(connection: Connection, name: str = "q", *messages: QueueMessage, **changes: Any) -> None:
    """Insert a queue with these messages, sent at NOW."""
    assert insert_queue(connection, queue_row(name, **changes))
    send_messages(connection, [(name, message) for message in messages], NOW)
