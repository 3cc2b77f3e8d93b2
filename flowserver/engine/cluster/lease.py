"""The id under which this process is a node. The writer's thread and leaving set it; all threads read it."""

import os
import socket
from uuid import uuid4

from flowserver.store.cluster.nodes import NO_NODE

HOST_NAME_CHARACTERS = 40


def new_node_id() -> str:
    """A new unique id that shows operators where the process runs."""
    return f"{socket.gethostname()[:HOST_NAME_CHARACTERS]}-{os.getpid()}-{uuid4().hex[:12]}"


class Lease:
    """The id under which this process writes and makes calls. It gets a new one each time it was declared dead."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.is_leaving = False

    @property
    def holder(self) -> str:
        """The node that makes the calls ordered now: this one, or `NO_NODE` while it leaves."""
        return NO_NODE if self.is_leaving else self.node_id

    def renew(self) -> str:
        """Take a new id and return it."""
        self.node_id = new_node_id()
        return self.node_id
