"""What the parts of a node's engine share, so that each is made from this and from what it alone needs."""

from dataclasses import dataclass

from flowserver.base.clock import Clock
from flowserver.base.clock_watch import ClockWatch
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.cluster.membership import Membership
from flowserver.engine.commit.committer import Committer
from flowserver.engine.reads.lookup_reader import Reader
from flowserver.store.integrity.disk_reserve import DiskReserve
from flowserver.store.sql.database import Database


@dataclass(frozen=True, slots=True)
class EngineContext:
    """One per engine. It knows none of the parts that are made from it."""

    database: Database
    """For reads that may take long, in a thread of the part's own; short ones go to `reader`."""
    committer: Committer
    """The only way to write."""
    reader: Reader
    lease: Lease
    """The id under which this node writes."""
    membership: Membership
    """Which other nodes there are, and notices to them."""
    tokens: TaskTokens
    clock: Clock
    clock_watch: ClockWatch
    """Asked for the present instant before anything is deleted by its age."""
    limits: Limits
    disk: DiskReserve
    """Asked before new work is accepted."""
