"""Marks of large executions that nodes are at work on, and how many unclean ends in a row each has been at work at."""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from flowserver.store.among import among, texts
from flowserver.store.tables import at_work, nodes


def any_was_at_work(connection: Connection, execution_ids: Collection[str]) -> bool:
    """Whether nodes that are gone have left marks of any of these executions."""
    return connection.execute(_COUNT_LEFT, {"ids": texts(connection, list(execution_ids))}).first() is not None


def mark_at_work(connection: Connection, node_id: str, execution_ids: Collection[str]) -> dict[str, int]:
    """Note that the node is about to work on these executions, of which it has no mark.

    Returns how many unclean ends in a row each was at work at. The marks of nodes that are gone are taken over.
    """
    ids = {"ids": texts(connection, list(execution_ids))}
    before = {row.execution_id: int(row.ends) for row in connection.execute(_COUNT_LEFT, ids)}
    connection.execute(_DELETE_LEFT, ids)
    ends = {execution_id: before.get(execution_id, 0) for execution_id in sorted(execution_ids)}
    rows = [{"execution_id": key, "node_id": node_id, "unclean_ends": number} for key, number in ends.items()]
    connection.execute(insert(at_work), rows)
    return ends


def clear_at_work(connection: Connection, node_id: str, execution_ids: Collection[str]) -> None:
    """The node has come through its work on these executions."""
    among_them = among(at_work.c.execution_id, bindparam("ids"))
    statement = delete(at_work).where(at_work.c.node_id == node_id, among_them)
    connection.execute(statement, {"ids": texts(connection, list(execution_ids))})


def clear_at_work_of(connection: Connection, node_id: str) -> None:
    """The node ends, or comes back as another, and that is no unclean end."""
    connection.execute(delete(at_work).where(at_work.c.node_id == node_id))


_LEFT = among(at_work.c.execution_id, bindparam("ids")) & at_work.c.node_id.not_in(select(nodes.c.node_id))
_COUNT_LEFT = (
    select(at_work.c.execution_id, (func.max(at_work.c.unclean_ends) + 1).label("ends"))
    .where(_LEFT)
    .group_by(at_work.c.execution_id)
)
_DELETE_LEFT = delete(at_work).where(_LEFT)
