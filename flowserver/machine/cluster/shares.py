"""The division of work among nodes. There is no leader: a hash of its id assigns work to one of the nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Share:
    """Which executions without a working node fall to this one; all nodes compute the same division."""

    rank: int = 0
    nodes: int = 1

    def owns(self, execution_id: str) -> bool:
        """Whether the execution falls to this node."""
        return self.nodes == 1 or crc32(execution_id.encode()) % self.nodes == self.rank

    @staticmethod
    def of(node_id: str, staying: Iterable[str]) -> "Share":
        """The share of a node; `staying` are the ids of the nodes that are not leaving, with or without its own."""
        nodes = sorted({*staying, node_id})
        return Share(nodes.index(node_id), len(nodes))
