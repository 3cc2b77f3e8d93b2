"""Nodes and their leases: a node is a row, and a node without a row cannot write.

Every transaction of a node begins with `hold_lease`, which keeps the row from being deleted until the transaction has
ended. So once another node has deleted the row, no transaction of the dead one is under way, and none can begin.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, Text, bindparam, delete, func, insert, select, table, true, update
from sqlalchemy.sql import column

from flowserver.store.schema.audit_tables import audit_records
from flowserver.store.schema.tables import executions, nodes
from flowserver.store.sql.prepared import require_later, send_waiting

NO_NODE = ""
"""The lease of a call that no node has taken yet: any node may take it."""

PARKED_HOLDER = "-"
"""Holds the invocations that are parked: no node takes them, and no node has this id."""


class LeaseLost(Exception):
    """This node was taken for dead and its work given to others; it must come back under a new id."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as others see it."""

    node_id: str
    session_name: str
    beats: int
    is_leaving: bool
    heartbeat_at: int
    """When it beat last, by its own clock (ms)."""


def register_node(connection: Connection, node_id: str, session_name: str, now_ms: int) -> None:
    """A node has started."""
    values = {"node_id": node_id, "session_name": session_name, "started_at": now_ms, "heartbeat_at": now_ms}
    connection.execute(insert(nodes), {**values, "beats": 0, "is_leaving": False})


def hold_lease(connection: Connection, node_id: str) -> None:
    """Make sure that the node has its row, and keeps it until this transaction ends; raises LeaseLost.

    On PostgreSQL the lock prevents the deletion of the row, not the node's own beats.
    """
    hold_lease_later(connection, node_id)
    send_waiting(connection)


def hold_lease_later(connection: Connection, node_id: str) -> None:
    """Like `hold_lease`; on PostgreSQL together with the next statement, which may raise LeaseLost."""
    require_later(connection, _HOLD_LEASE, {"b_id": node_id}, LeaseLost(f"node {node_id} was taken for dead"))


_HOLD_LEASE = (
    select(nodes.c.node_id).where(nodes.c.node_id == bindparam("b_id")).with_for_update(read=True, key_share=True)
)


def beat(connection: Connection, node_id: str, now_ms: int) -> bool:
    """The node is alive; False if it has lost its lease."""
    alive = update(nodes).where(nodes.c.node_id == node_id).values(heartbeat_at=now_ms, beats=nodes.c.beats + 1)
    return connection.execute(alive).rowcount == 1


def list_nodes(connection: Connection) -> list[NodeRow]:
    """All nodes, by id."""
    query = select(nodes.c.node_id, nodes.c.session_name, nodes.c.beats, nodes.c.is_leaving, nodes.c.heartbeat_at)
    return [NodeRow(*row) for row in connection.execute(query.order_by(nodes.c.node_id))]


def newest_instant(connection: Connection) -> int | None:
    """The newest instant (ms) at which a node is known to have run; None if none is known."""
    newest = [
        select(func.max(nodes.c.heartbeat_at)),
        select(executions.c.started_at).order_by(executions.c.started_at.desc()).limit(1),
        select(audit_records.c.at).order_by(audit_records.c.record_id.desc()).limit(1),
    ]
    found = [connection.execute(query).scalar() for query in newest]
    return max((at for at in found if isinstance(at, int)), default=None)


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node as people see it; instants in ms, by the node's own clock."""

    node_id: str
    started_at: int
    heartbeat_at: int
    is_leaving: bool


def list_shown_nodes(connection: Connection, after: str, limit: int) -> list[ShownNode]:
    """Nodes by id, after `after`."""
    query = select(nodes.c.node_id, nodes.c.started_at, nodes.c.heartbeat_at, nodes.c.is_leaving)
    rows = connection.execute(query.where(nodes.c.node_id > after).order_by(nodes.c.node_id).limit(limit))
    return [ShownNode(*row) for row in rows]


def mark_leaving(connection: Connection, node_id: str) -> None:
    """The node takes no more work; it still finishes what it has."""
    connection.execute(update(nodes).where(nodes.c.node_id == node_id).values(is_leaving=true()))


def remove_node(connection: Connection, node_id: str) -> None:
    """The node has stopped; what it left undone is anybody's."""
    connection.execute(delete(nodes).where(nodes.c.node_id == node_id))


def remove_other_nodes(connection: Connection, node_id: str) -> None:
    """Take the lease of every node but one; for a database that only one process can have open."""
    connection.execute(delete(nodes).where(nodes.c.node_id != node_id))


def declare_dead(connection: Connection, silent: NodeRow) -> bool:
    """Take the lease of a node of a PostgreSQL database that has not beaten since `silent` was read; False if it has.

    A process that is frozen, or a machine that is gone, may hold row locks in an open transaction: its sessions are
    ended first. Outside a transaction, or the sessions would end only with it.
    """
    unchanged = (nodes.c.node_id == silent.node_id) & (nodes.c.beats == silent.beats)
    name = column("application_name", Text)
    sessions = table("pg_stat_activity", column("pid"), name)
    ending = select(func.pg_terminate_backend(sessions.c.pid)).where(
        name == silent.session_name, select(nodes.c.node_id).where(unchanged).exists()
    )
    connection.execute(ending).all()
    return connection.execute(delete(nodes).where(unchanged)).rowcount == 1


def count_nodes(connection: Connection) -> int:
    """How many server processes are registered, including those that are stopping."""
    return connection.execute(select(func.count()).select_from(nodes)).scalar_one()
