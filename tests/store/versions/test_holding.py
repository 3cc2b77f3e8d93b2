"""A start locks its version until it has committed, so that a deletion cannot miss it."""

from collections.abc import Iterator

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import OperationalError

from flowserver.store.schema.tables import definitions
from flowserver.store.schema.version_tables import flow_versions
from flowserver.store.sql.database import Database
from flowserver.store.versions.resolving import Qualified, resolve_starts
from flowserver.store.versions.versions import hold_version


@pytest.fixture
def two_sessions(migrated_postgres_url: str) -> Iterator[tuple[Database, Database]]:
    databases = Database(migrated_postgres_url), Database(migrated_postgres_url)
    yield databases
    for database in databases:
        database.close()


def test_a_deletion_waits_for_a_start(two_sessions: tuple[Database, Database]) -> None:
    one, other = two_sessions
    with one.write() as connection:
        row = {"flow_id": "f", "version": 1, "definition_id": "d", "description": "", "created_at": 1}
        connection.execute(insert(flow_versions), row)
        connection.execute(insert(definitions), {"definition_id": "d", "flow_id": "f", "text": "t", "created_at": 1})
    with one.write() as starting:
        assert set(resolve_starts(starting, [Qualified("f", "1", "e")])) == {"e"}
        with other.write() as second:
            assert set(resolve_starts(second, [Qualified("f", "1", "e2")])) == {"e2"}  # starts do not wait for starts
        with pytest.raises(OperationalError, match="lock timeout"), other.write() as deleting:
            deleting.execute(text("SET LOCAL lock_timeout = '1ms'"))
            hold_version(deleting, "f", 1)
    with other.write() as deleting:
        assert hold_version(deleting, "f", 1)
