"""Recovery: finds by the rows alone work that should continue and does not, and resumes it.

At a start it resumes everything after a crash. Later it finds nothing, unless a node died, a callback was not
delivered, a call was lost, or a flow was deleted.

There are two kinds of calls, those of steps and asynchronous invocations. The row of a call names the node that holds
it. A call is

- *orphaned* if no node of that name is registered: its node died, or released it. Any node may resume it.
- *lost* if the row names this node, and the call neither waits nor is under way here.
  A call may be between its commit and its dispatch: it is lost only if the next sweep misses it too.
  A node may hold very many calls. A sweep reads one page of them; "the next sweep" is the next that reads that page.
- *parked* if the server could not go on with it. It waits for an operator, and recovery leaves it alone.

Several nodes may find the same call. That does no harm: a step's call is retried by a message that names the attempt,
of which only the first has an effect; an invocation is leased to one node before it goes on.

Rebalancing comes first in each sweep: a full node releases calls that wait here and fall to other nodes. So a node that
joins gets its part of what has piled up, and one node's clients keep all nodes busy. What was just released is
orphaned, but meant for another node. A node keeps what falls to itself, so a call moves once, unless it is not taken.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from flowserver.concurrency.waiting import Signal
from flowserver.engine.background_loop import BackgroundLoop
from flowserver.engine.context import EngineContext
from flowserver.store.access_keys import delete_expired_nonces

log = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
LEFT_SECONDS = 0.6
"""When to sweep again after orphans that fall to another node: it may have died as well, which is not known yet."""

HELD_PER_SWEEP = 5_000
"""Size of a page of the calls that this node holds."""

RELEASED_PER_SWEEP = 200
"""So few that other nodes have taken them before they seem left behind."""

C = TypeVar("C")
K = TypeVar("K")
U = TypeVar("U")

SweepScope = Literal["all", "own share", "nothing released"]
"""What a sweep resumes of what any node may resume: all; its own share, as all nodes sweep now; or nothing that this
node may just have released.
"""


@dataclass(frozen=True, kw_only=True)
class Found(Generic[C, K, U]):
    """What a sweep read about one kind: calls `C`, their keys `K`, and ends `U` not yet reported to their tasks."""

    held: list[C]
    """A page of the calls whose rows name this node: under way, waiting, or lost."""
    is_last_page: bool
    orphans: list[C]
    dropped: Collection[K]
    """Under way here, but ended or being stopped by another node, whose notice was lost."""
    unwanted: list[str]
    """Executions of deleted flows; invocations that a turn gave up."""
    untold: list[U]
    ownerless: list[str] = field(default_factory=list)
    """Sub-flows that no step waits for."""
    ready: list[str] = field(default_factory=list)
    """Executions with a scope that can go on."""


class Resumed(NamedTuple):
    """How many a sweep resumed; whether orphans were among them, or left to other nodes; whether there may be more."""

    calls: int
    executions: int = 0
    callbacks: int = 0
    had_orphans: bool = False
    left_orphans: bool = False
    is_full: bool = False


class Recoverable(Protocol[C, K, U]):
    """One kind of calls."""

    @property
    def under_way(self) -> list[K]:
        """The calls under way here. Their rows were committed before."""

    def find(self, under_way: Collection[K]) -> Found[C, K, U]:
        """Read what is due. Blocks; called in the loop's thread."""

    def is_local(self, call: C) -> bool:
        """Whether the call waits or is under way here."""

    async def resume(self, found: Found[C, K, U], lost: list[C], scope: SweepScope) -> Resumed:
        """Go on with what was found, as far as `scope` allows."""

    async def release(self, keeps: Callable[[str], bool], limit: int) -> int:
        """Release up to `limit` calls that wait here, none whose id `keeps` is true for; returns how many.

        If the database fails, these calls are lost and resumed here.
        """


class LostCalls(Generic[C]):
    """Tells which calls of one kind are lost."""

    def __init__(self) -> None:
        self._suspects: set[C] = set()
        """Missed when their page was read last."""
        self._missed: set[C] = set()
        """Missed on the pages read since the first."""

    def among(self, found: Found[C, Any, Any], is_local: Callable[[C], bool]) -> list[C]:
        """The calls of this page that are missed now and were missed before."""
        missed = [call for call in found.held if not is_local(call)]
        lost = [call for call in missed if call in self._suspects]
        self._missed.update(missed)
        if found.is_last_page:
            self._suspects, self._missed = self._missed, set()
        return lost


class Recovery(BackgroundLoop):
    """Sweeps at start, every few seconds, and as soon as there is a reason to."""

    name = "recovery"

    def __init__(self, context: EngineContext, kinds: Sequence[Recoverable[Any, Any, Any]]) -> None:
        self._committer = context.committer
        self._membership = context.membership
        self._watch = context.clock_watch
        self._kinds = [(kind, LostCalls[Any]()) for kind in kinds]
        self._has_swept = False
        self._has_left_orphans = False
        self._sweep_now = Signal()
        self._sweep_now.set()

    def sweep_soon(self) -> None:
        """Something was left to recovery: do not wait for the next sweep."""
        self._sweep_now.set()

    async def _iterate(self) -> None:
        """All nodes sweep for a reason, so each takes its share; a sweep that only its time has brought takes all."""
        has_reason = await self._sweep_now.is_set_within(LEFT_SECONDS if self._has_left_orphans else SWEEP_SECONDS)
        self._sweep_now.clear()
        await self.sweep(only_own_share=has_reason)

    async def sweep(self, *, only_own_share: bool = False) -> None:
        """Look once and resume what is found; first release what other nodes are to make."""
        resumed: list[Resumed] = []
        for kind, lost in self._kinds:
            resumed.append(await self._sweep(kind, lost, only_own_share))
            self._has_left_orphans = any(each.left_orphans for each in resumed)
        if (now := self._watch.deletion_now()) is not None:
            await self._committer.write(partial(delete_expired_nonces, now_ms=now))
        if not self._has_swept or any(each.had_orphans for each in resumed):  # at start, and when another node is gone
            counts = [sum(column) for column in zip(*resumed, strict=True)][:3]
            if any(counts):
                log.info("taken up: calls %d, executions %d, callbacks of sub-flows %d", *counts)
        self._has_swept = True

    async def _sweep(self, kind: Recoverable[C, K, U], lost: LostCalls[C], only_own_share: bool) -> Resumed:
        released = await kind.release(self._membership.share.owns, RELEASED_PER_SWEEP)
        if released:
            self._membership.announce().sweep = True
        found = await self._aside(partial(kind.find, kind.under_way))
        scope: SweepScope = "nothing released" if released else "own share" if only_own_share else "all"
        resumed = await kind.resume(found, lost.among(found, kind.is_local), scope)
        if resumed.is_full or released == RELEASED_PER_SWEEP:
            self._sweep_now.set()
        return resumed
