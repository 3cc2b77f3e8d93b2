"""Cluster membership of simulated nodes. The simulation decides which nodes are alive, so there is no heartbeat."""

from collections.abc import Callable

from flowserver.engine.cluster.lease import Lease
from flowserver.machine.cluster.shares import Share
from flowserver.store.cluster.nodes import list_nodes, register_node, remove_node
from tests.simulation.shared_database import SharedDatabase


class NumberedLease(Lease):
    """A lease whose new ids follow from the seed."""

    def __init__(self, next_id: Callable[[], str]) -> None:
        super().__init__(next_id())
        self._next_id = next_id

    def renew(self) -> str:
        self.node_id = self._next_id()
        return self.node_id


class ClusterView:
    """The other nodes as one node sees them; the engine's `Membership`."""

    def __init__(self, database: SharedDatabase, lease: Lease) -> None:
        self._database = database
        self._lease = lease
        self.share = Share()

    def look(self) -> None:
        """Read which nodes are registered."""
        with self._database.read() as connection:
            self.share = Share.of(
                self._lease.node_id, [row.node_id for row in list_nodes(connection) if not row.is_leaving]
            )


def join(database: SharedDatabase, node_id: str, now_ms: int) -> None:
    """Register a node that has started."""
    with database.read() as connection:
        register_node(connection, node_id, database.session_name, now_ms)


def declare_dead(database: SharedDatabase, node_id: str) -> None:
    """Remove a node whose heartbeat is overdue, whether or not it is alive."""
    with database.read() as connection:
        remove_node(connection, node_id)
