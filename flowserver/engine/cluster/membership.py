"""Which nodes are alive: writes this node's beats, counts those of others, sends and receives notices. PostgreSQL only.

One thread and one connection of its own, so that neither a long commit nor a busy event loop delays a beat. Liveness
does not depend on clocks: a node is dead when its count has not changed during `SILENT_LOOKS` reads by this node.

A lease is a row. Every transaction of a node holds a share lock on its row in `nodes`. A node that declares another
dead deletes that row: it waits for the other's transaction or ends its session. Afterwards the dead node cannot commit,
even if it was only frozen. SQLite has one process and needs no beats.

The nodes divide due and orphaned work by its ids. An idle node also takes what others have not done, because doing work
twice has no second effect.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from functools import partial
from typing import Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from flowserver.base.clock import Clock
from flowserver.base.clock_watch import ClockWatch
from flowserver.concurrency.threads import Threads
from flowserver.engine.cluster.lease import Lease
from flowserver.machine.cluster.dead_nodes import Silence
from flowserver.machine.cluster.shares import Share
from flowserver.store.cluster.listen_notify import NoticesLost, listen, notify, receive
from flowserver.store.cluster.nodes import NodeRow, beat, declare_dead, list_nodes
from flowserver.store.cluster.notices import Notice, read_notice
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import LOCK_NOT_AVAILABLE, reason_of, sqlstate_of

log = logging.getLogger(__name__)

BEAT_SECONDS = 0.4
"""With `SILENT_LOOKS`: between 2.0 and 2.4 s from a node's last beat until it is declared dead."""

RECONNECT_SECONDS = 0.5
DIFFERENT_LOOKS = 6
"""Reads in which the clock of another node differs before it counts; a silent node is dead before that."""


class MembershipListener(Protocol):
    """Acts on changes; called in the event loop."""

    def nodes_changed(self) -> None:
        """A node has joined or left, or this one may have missed notices: anything may have happened."""
        ...

    def heard(self, notice: Notice) -> None:
        """Another node sent a notice."""
        ...

    def lease_is_lost(self) -> None:
        """Another node declared this one dead."""
        ...


class Membership:
    """One node's membership in the cluster. With SQLite it is the only node."""

    def __init__(
        self, database: Database, lease: Lease, clock: Clock, watch: ClockWatch, listener: MembershipListener
    ) -> None:
        self.share = Share()
        self._database = database
        self._lease = lease
        self._clock = clock
        self._watch = watch
        self._differences: deque[int] = deque(maxlen=DIFFERENT_LOOKS)
        self._listener = listener
        self._silence = Silence()
        self._known: set[str] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended = asyncio.Event()
        self._notices = Threads("notices")
        self._unsent = Notice()
        self._sender: asyncio.Task[None] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether no other node would receive a notice."""
        return self.share.nodes == 1 and not self._lease.is_leaving

    def start(self) -> None:
        """Start the beats."""
        if not self._database.is_sqlite:
            arguments = (asyncio.get_running_loop(),)
            self._thread = threading.Thread(target=self._run, args=arguments, name="membership", daemon=True)
            self._thread.start()

    async def stop(self) -> None:
        """Stop the beats; notices can still be sent."""
        self._stopping.set()
        if self._thread is not None:
            self.announce().stops = True
            await self._ended.wait()

    def close(self) -> None:
        """End the thread that sends notices; announce nothing afterwards."""
        self._notices.close()

    async def sent(self) -> None:
        """Return when all announced notices have been sent, or have failed."""
        if self._sender is not None:
            await self._sender

    def announce(self) -> Notice:
        """The notice that is sent next. Add to it before you yield to the event loop."""
        if self._sender is None and not self._database.is_sqlite:
            self._sender = asyncio.create_task(self._send(), name="notices")
        return self._unsent

    async def _send(self) -> None:
        try:
            while self._unsent != Notice():
                notice, self._unsent = self._unsent, Notice()
                await self._notices.run(partial(self._notify, list(notice.texts(self._lease.node_id))))
        except Exception as error:
            log.warning("a notice was not sent; other nodes read the rows periodically: %s", reason_of(error))
        finally:
            self._sender = None

    def _notify(self, texts: list[str]) -> None:
        with self._database.session() as connection:
            notify(connection, texts)

    # In the thread

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._stay(loop)
        finally:
            loop.call_soon_threadsafe(self._ended.set)

    def _stay(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._stopping.is_set():
            try:
                with self._database.session() as connection:
                    self._attend(connection, loop)
            except (SQLAlchemyError, NoticesLost) as error:
                log.warning("the other nodes cannot be reached; retrying: %s", reason_of(error))
            except Exception:
                log.exception("an iteration of the membership failed; retrying")
            self._stopping.wait(RECONNECT_SECONDS)

    def _attend(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        listen(connection)
        self._known = set()  # so that the first read counts as a change: notices may have been missed
        self._silence = Silence()  # others could not beat either while the database was away
        while not self._stopping.is_set():
            if not beat(connection, self._lease.node_id, self._clock.now_ms()):
                loop.call_soon_threadsafe(self._listener.lease_is_lost)
            self._look(connection, loop)
            self._listen(connection, loop)

    def _look(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        rows = list_nodes(connection)
        silent = self._silence.look({row.node_id: row.beats for row in rows})
        self._compare_clocks(rows)
        for row in [row for row in rows if row.node_id in silent and row.node_id != self._lease.node_id]:
            if self._declare_dead(connection, row):
                log.warning("node %s has been silent and is taken for dead", row.node_id)
                rows.remove(row)
        known = {row.node_id for row in rows if not row.is_leaving}
        self.share = Share.of(self._lease.node_id, known)
        if known != self._known:
            self._known = known
            loop.call_soon_threadsafe(self._listener.nodes_changed)

    def _compare_clocks(self, rows: list[NodeRow]) -> None:
        """Of several reads the smallest difference counts: one read may fall between two beats of a frozen node."""
        now, mine = self._clock.now_ms(), self._lease.node_id
        differences = (now - row.heartbeat_at for row in rows if row.node_id != mine)
        self._differences.append(max(differences, key=abs, default=0))
        if len(self._differences) == DIFFERENT_LOOKS:
            self._watch.compare_others(min(self._differences, key=abs))

    def _declare_dead(self, connection: Connection, silent: NodeRow) -> bool:
        """Take a node's lease; False if it beats again, or one of its transactions still holds its row."""
        try:
            return declare_dead(connection, silent)
        except OperationalError as error:
            if sqlstate_of(error) != LOCK_NOT_AVAILABLE:
                raise
            return False  # the next read tries again; meanwhile this node must beat

    def _listen(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Receive notices until it is time for the next beat."""
        until = time.monotonic() + BEAT_SECONDS
        while (left := until - time.monotonic()) > 0 and not self._stopping.is_set():
            for text in receive(connection, left):
                if self._stopping.is_set():
                    return
                notice = read_notice(text, self._lease.node_id)
                if notice is not None:
                    loop.call_soon_threadsafe(self._listener.heard, notice)
