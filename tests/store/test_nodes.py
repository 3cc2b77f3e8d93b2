"""Server processes and their heartbeats."""

from sqlalchemy import select

from flowserver.store.database import Database
from flowserver.store.nodes import beat, living_nodes, register_node, remove_dead_nodes, remove_node
from flowserver.store.tables import nodes


def test_a_node_lives_while_it_beats(database: Database) -> None:
    with database.write() as connection:
        register_node(connection, "a", 100)
        register_node(connection, "b", 100)
        beat(connection, "a", 200)
        assert sorted(living_nodes(connection, 100)) == ["a", "b"]
        assert living_nodes(connection, 101) == ["a"]
        assert living_nodes(connection, 201) == []
        assert tuple(connection.execute(select(nodes).where(nodes.c.node_id == "a")).one()) == ("a", 100, 200)


def test_nodes_leave_or_are_forgotten(database: Database) -> None:
    with database.write() as connection:
        for name, at in (("a", 100), ("b", 200), ("c", 300)):
            register_node(connection, name, at)
        remove_node(connection, "c")
        remove_dead_nodes(connection, 200)
        assert living_nodes(connection, 0) == ["b"]


def test_a_node_that_slept_too_long_comes_back(database: Database) -> None:
    with database.write() as connection:
        register_node(connection, "a", 100)
        remove_dead_nodes(connection, 200)
        beat(connection, "a", 300)
        assert living_nodes(connection, 300) == ["a"]
