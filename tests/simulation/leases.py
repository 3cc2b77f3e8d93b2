"""Who the nodes are: rows, and how each sees the others. A clock that beats would only tell what is decided here."""

from collections.abc import Callable

from flowserver.engine.cluster.lease import Lease
from flowserver.engine.cluster.membership import Share
from flowserver.store.cluster.nodes import list_nodes, register_node, remove_node
from tests.simulation.disk import Disk


class NumberedLease(Lease):
    """A lease whose new ids follow from the seed, as all else does."""

    def __init__(self, next_id: Callable[[], str]) -> None:
        super().__init__(next_id())
        self._next_id = next_id

    def renew(self) -> str:
        self.node_id = self._next_id()
        return self.node_id


class Company:
    """The other nodes as one node sees them; what the engine calls a membership."""

    def __init__(self, disk: Disk, lease: Lease) -> None:
        self._disk = disk
        self._lease = lease
        self.share = Share()

    def look(self) -> None:
        """See who is there."""
        with self._disk.read() as connection:
            self.share = Share.of(self._lease.node_id, list_nodes(connection))


def join(disk: Disk, node_id: str, now_ms: int) -> None:
    """A node has started."""
    with disk.read() as connection:
        register_node(connection, node_id, disk.session_name, now_ms)


def declare_dead(disk: Disk, node_id: str) -> None:
    """The others have not heard of the node for too long, whether it lives or not."""
    with disk.read() as connection:
        remove_node(connection, node_id)
