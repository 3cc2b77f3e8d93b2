"""A redrive with a version holds it until it has committed, so that a deletion cannot miss it."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import OperationalError

from flowserver.operations.redrive_plans import RedriveWish
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from flowserver.store.versions.versions import hold_version
from tests.engine.nodes import FragileDatabase, running_node
from tests.support.clock import ManualClock


@pytest.fixture
def two_sessions(migrated_postgres_url: str) -> Iterator[tuple[FragileDatabase, Database]]:
    databases = FragileDatabase(migrated_postgres_url), Database(migrated_postgres_url)
    yield databases
    for database in databases:
        database.close()


async def test_a_deletion_waits_for_a_redrive(
    two_sessions: tuple[FragileDatabase, Database], clock: ManualClock
) -> None:
    own, other = two_sessions
    async with running_node(own, clock) as node:
        await node.create_flow("f", "- {type: fail, name: x, error: E}")
        version = (await node.operations.versions.publish("f"))[0].version
        flow_id = (await node.operations.flows.describe("f")).flow_id
        await node.start("f", "e")
        await node.end_of("f", "e")
        is_redriven = select(executions).where(executions.c.redrive_count == 1)
        waited: list[bool] = []

        def delete_before_commit(connection: Connection) -> bool:
            if connection.execute(is_redriven).first() is not None and not waited:
                with pytest.raises(OperationalError, match="lock timeout"), other.write() as deleting:
                    deleting.execute(text("SET LOCAL lock_timeout = '1ms'"))
                    hold_version(deleting, flow_id, version)
                waited.append(True)
            return False

        own.refuses = delete_before_commit
        await node.operations.redrives.redrive("f", "e", RedriveWish(definition=version))
        assert waited == [True]
