"""This process's claim to be a node. Written by the writer's thread and on leaving, read everywhere."""

import os
import socket
from uuid import uuid4

from flowserver.store.cluster.nodes import NO_NODE

HOST_NAME_CHARACTERS = 40


def new_node_id() -> str:
    """An id that was never used before and tells people where the process runs."""
    return f"{socket.gethostname()[:HOST_NAME_CHARACTERS]}-{os.getpid()}-{uuid4().hex[:12]}"


class Lease:
    """The id under which this process writes and makes calls; a new one each time it was taken for dead."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.is_leaving = False

    @property
    def holder(self) -> str:
        """The node that makes the calls ordered now: this one, or `NO_NODE` while it leaves."""
        return NO_NODE if self.is_leaving else self.node_id

    def renew(self) -> str:
        """Come back as another node; returns its id."""
        self.node_id = new_node_id()
        return self.node_id
