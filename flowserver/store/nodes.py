"""Server processes and their heartbeats."""

from sqlalchemy import Connection, delete, insert, select, update

from flowserver.store.tables import nodes


def register_node(connection: Connection, node_id: str, now_ms: int) -> None:
    """A node has started."""
    connection.execute(insert(nodes), {"node_id": node_id, "started_at": now_ms, "heartbeat_at": now_ms})


def beat(connection: Connection, node_id: str, now_ms: int) -> None:
    """The node is alive; one that was silent for so long that it was forgotten is registered again."""
    changed = connection.execute(update(nodes).where(nodes.c.node_id == node_id).values(heartbeat_at=now_ms))
    if changed.rowcount == 0:
        register_node(connection, node_id, now_ms)


def living_nodes(connection: Connection, since_ms: int) -> list[str]:
    """Nodes whose last heartbeat is not older than `since_ms`."""
    return list(connection.execute(select(nodes.c.node_id).where(nodes.c.heartbeat_at >= since_ms)).scalars())


def remove_node(connection: Connection, node_id: str) -> None:
    """The node has stopped; what it left undone is anybody's."""
    connection.execute(delete(nodes).where(nodes.c.node_id == node_id))


def remove_dead_nodes(connection: Connection, before_ms: int) -> None:
    """Forget nodes that have been silent since before `before_ms`."""
    connection.execute(delete(nodes).where(nodes.c.heartbeat_at < before_ms))
