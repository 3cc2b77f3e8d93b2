"""This process's claim to be a node. Written by the writer's thread and on leaving, read everywhere."""

from uuid import uuid4

from flowserver.store.nodes import NOBODY


class Lease:
    """The id under which this process writes and makes calls; a new one each time it was taken for dead."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.is_leaving = False

    @property
    def holder(self) -> str:
        """Who makes the calls that are ordered now: this node, or whoever comes when this one is leaving."""
        return NOBODY if self.is_leaving else self.node_id

    def renew(self) -> str:
        """Come back as another node; returns its id."""
        self.node_id = str(uuid4())
        return self.node_id
