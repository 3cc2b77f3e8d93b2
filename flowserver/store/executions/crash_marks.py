"""Marks of the large executions that nodes are working on.

A mark that a dead node left says that the node may have died of that execution. Each mark counts how many nodes in a
row died while they worked on it.
"""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from flowserver.store.schema.tables import at_work, nodes
from flowserver.store.sql.list_parameter import among, texts


def any_was_at_work(connection: Connection, execution_ids: Collection[str]) -> bool:
    """Whether dead nodes have left marks of any of these executions."""
    return connection.execute(_COUNT_LEFT, {"ids": texts(connection, list(execution_ids))}).first() is not None


def mark_at_work(connection: Connection, node_id: str, execution_ids: Collection[str]) -> dict[str, int]:
    """Mark these executions as being worked on by the node.

    Returns for each how many nodes in a row died while they worked on it. The marks of dead nodes are replaced. Marks
    that the node has already stay as they are: an earlier try committed them, and only its reply was lost.
    """
    ids = {"ids": texts(connection, list(execution_ids))}
    before = {row.execution_id: int(row.ends) for row in connection.execute(_COUNT_LEFT, ids)}
    connection.execute(_DELETE_LEFT, ids)
    own = {row.execution_id: row.unclean_ends for row in connection.execute(_OWN, ids | {"b_node": node_id})}
    ends = {execution_id: before.get(execution_id, 0) for execution_id in sorted(execution_ids)} | own
    rows = [{"execution_id": key, "node_id": node_id, "unclean_ends": ends[key]} for key in ends if key not in own]
    if rows:
        connection.execute(insert(at_work), rows)
    return ends


def clear_at_work(connection: Connection, node_id: str, execution_ids: Collection[str]) -> None:
    """Delete the node's marks of these executions: their turns are committed."""
    among_them = among(at_work.c.execution_id, bindparam("ids"))
    statement = delete(at_work).where(at_work.c.node_id == node_id, among_them)
    connection.execute(statement, {"ids": texts(connection, list(execution_ids))})


def clear_at_work_of(connection: Connection, node_id: str) -> None:
    """Delete all marks of a node that stops cleanly or registers again under another id."""
    connection.execute(delete(at_work).where(at_work.c.node_id == node_id))


_LEFT = among(at_work.c.execution_id, bindparam("ids")) & at_work.c.node_id.not_in(select(nodes.c.node_id))
_COUNT_LEFT = (
    select(at_work.c.execution_id, (func.max(at_work.c.unclean_ends) + 1).label("ends"))
    .where(_LEFT)
    .group_by(at_work.c.execution_id)
)
_DELETE_LEFT = delete(at_work).where(_LEFT)
_OWN = select(at_work.c.execution_id, at_work.c.unclean_ends).where(
    among(at_work.c.execution_id, bindparam("ids")), at_work.c.node_id == bindparam("b_node")
)
