"""Nodes and their leases."""

import pytest

from flowserver.store.cluster.nodes import (
    LeaseLost,
    NodeRow,
    beat,
    declare_dead,
    hold_lease,
    list_nodes,
    mark_leaving,
    register_node,
    remove_node,
    remove_other_nodes,
)
from flowserver.store.sql.database import Database


def test_a_node_counts_its_heartbeats(database: Database) -> None:
    with database.write() as connection:
        register_node(connection, "b", "session-b", 100)
        register_node(connection, "a", "session-a", 100)
        assert beat(connection, "a", 200)
        assert not beat(connection, "gone", 200)
        mark_leaving(connection, "b")
        rows = [NodeRow("a", "session-a", 1, False, 200), NodeRow("b", "session-b", 0, True, 100)]
        assert list_nodes(connection) == rows


def test_nodes_are_removed(database: Database) -> None:
    with database.write() as connection:
        for name in ("a", "b", "c", "d"):
            register_node(connection, name, "session", 100)
        remove_node(connection, "c")
        assert [row.node_id for row in list_nodes(connection)] == ["a", "b", "d"]
        remove_other_nodes(connection, "b")
        assert [row.node_id for row in list_nodes(connection)] == ["b"]


def test_a_transaction_needs_the_lease(database: Database) -> None:
    with database.write() as connection:
        register_node(connection, "a", "session", 100)
        hold_lease(connection, "a")
        with pytest.raises(LeaseLost, match="b was taken for dead"):
            hold_lease(connection, "b")


def test_a_node_with_a_recent_heartbeat_is_not_removed(postgres_database: Database) -> None:
    with postgres_database.write() as connection:
        register_node(connection, "a", "session", 100)
        [seen] = list_nodes(connection)
        beat(connection, "a", 200)
    with postgres_database.session() as session:
        assert not declare_dead(session, seen)
        [seen] = list_nodes(session)
        assert declare_dead(session, seen)
        assert list_nodes(session) == []


def test_the_open_transaction_of_a_dead_node_ends_with_its_lease(postgres_database: Database) -> None:
    """A frozen process holds its locks indefinitely, so the live nodes end its sessions."""
    frozen = Database(postgres_database.url.render_as_string(hide_password=False))
    try:
        with frozen.write() as connection:
            register_node(connection, "frozen", frozen.session_name, 100)
        with pytest.raises(Exception, match="terminating connection"), frozen.write() as connection:
            hold_lease(connection, "frozen")
            with postgres_database.session() as session:
                [seen] = list_nodes(session)
                assert beat(session, "frozen", 200)  # its heartbeat could run beside its own transaction
                assert not declare_dead(session, seen)
                [seen] = list_nodes(session)
                assert declare_dead(session, seen)
            beat(connection, "frozen", 300)
        with postgres_database.read() as connection:
            assert list_nodes(connection) == []
    finally:
        frozen.close()
