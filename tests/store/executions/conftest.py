"""Executions that several tests list or look up."""

import pytest

from flowserver.machine.state import Status
from flowserver.store.sql.database import Database
from tests.store.rows import end, keep_flow, new_execution, save_new


@pytest.fixture
def listed(database: Database) -> Database:
    """Seven executions of the flow f, three of them started in one millisecond, and one of the flow g."""
    starts = {"a": 10, "B": 30, "b": 30, "_": 30, "z": 20, "ab": 40, "a_b": 5}
    with database.write() as connection:
        for name, started_at in starts.items():
            stored = new_execution(f"id-{name}", name=name, started_at=started_at)
            save_new(connection, end(stored, Status.FAILED) if name in ("a", "b") else stored)
        save_new(connection, new_execution("other", "flow-g", name="b"))
        for flow in "fg":
            keep_flow(connection, flow)
    return database
