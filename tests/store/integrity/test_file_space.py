"""The size of the data: every table counts, on both databases."""

import secrets
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Table, insert

from flowserver.store.integrity.file_space import WAITING_TABLES, executions_bytes, used_bytes
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.queues.deliveries import insert_deliveries
from flowserver.store.schema.all_tables import metadata
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.queue_tables import deliveries, queue_messages
from flowserver.store.schema.tables import history_parts
from flowserver.store.sql.database import Database
from tests.store.queue_rows import queue_message
from tests.store.queues.test_deliveries import new
from tests.store.rows import invocation_row

ROWS, BYTES = 40, 40_000


def fill(connection: Any, table: Table) -> None:
    """Insert this many rows with this many bytes each, which cannot be compressed."""
    for number in range(ROWS):
        wide = secrets.token_urlsafe(BYTES * 3 // 4)[:BYTES]
        if table is invocations:
            insert_invocations(connection, [invocation_row(f"k{number}", payload=secrets.token_bytes(BYTES))])
        elif table is deliveries:
            insert_deliveries(connection, [new(f"d{number}", body=wide)], 1)
        elif table is queue_messages:
            connection.execute(insert(table), {**queue_values(f"m{number}"), "body": wide})
        else:
            connection.execute(insert(table), {"execution_id": "e", "event_id": number, "number": 0, "value": wide})


def queue_values(message_id: str) -> dict[str, Any]:
    message = queue_message(message_id)
    return {"queue": "q", "is_ready": True} | {
        column.name: getattr(message, column.name) for column in queue_messages.c if hasattr(message, column.name)
    }


@pytest.mark.parametrize(
    "table", [invocations, deliveries, queue_messages, history_parts], ids=lambda table: table.name
)
def test_stored_rows_count_and_deleted_rows_do_not(database: Database, table: Table) -> None:
    def used() -> int:
        return database.run_read(used_bytes)

    empty = used()
    with database.write() as connection:
        fill(connection, table)
    assert ROWS * BYTES <= used() - empty <= ROWS * BYTES * 1.2
    with database.write() as connection:
        connection.execute(table.delete())
    assert used() - empty <= BYTES


@pytest.mark.parametrize(
    "table", [invocations, deliveries, queue_messages, history_parts], ids=lambda table: table.name
)
def test_what_waits_does_not_count_against_executions(database: Database, table: Table) -> None:
    empty = database.run_read(executions_bytes)
    with database.write() as connection:
        fill(connection, table)
    more = database.run_read(executions_bytes) - empty
    if table in WAITING_TABLES:
        assert abs(more) <= ROWS * BYTES * 0.1
    else:
        assert ROWS * BYTES <= more <= ROWS * BYTES * 1.2


def test_gaps_between_rows_do_not_mislead_the_estimate(sqlite_url: str) -> None:
    """One old row and many new ones, far apart, as in a queue with a message that no worker takes."""
    with closing(Database(sqlite_url)) as database:
        empty = database.run_read(executions_bytes)
        with database.write() as connection:
            fill(connection, queue_messages)
            connection.exec_driver_sql("UPDATE queue_messages SET rowid = rowid + 5000000000 WHERE rowid > 1")
        assert abs(database.run_read(executions_bytes) - empty) <= ROWS * BYTES * 0.1


def test_a_new_database_uses_almost_no_space(database: Database) -> None:
    assert database.run_read(used_bytes) < 1_000_000
    assert {"queue_messages", "invocations", "history_parts"} <= set(metadata.tables)
