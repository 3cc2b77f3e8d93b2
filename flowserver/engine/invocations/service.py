"""Asynchronous invocations (Serverless Tasks) of this node: submitted, waiting, under way, stopped, ended.

An invocation is its row, which says who has it in hand; what is here is only how the holder goes on with it. Whoever
ends one writes with its end what is still to be done, so a crash at any point leaves nothing out.
"""

import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from flowserver.base.errors import (
    FlowServerError,
    FunctionNotFound,
    InternalServerError,
    InvalidArgument,
    InvocationNotExists,
    ResourceThrottled,
    ServiceNotFound,
)
from flowserver.engine.callbacks import Callbacks
from flowserver.engine.commit.coalescer import Coalescer
from flowserver.engine.context import EngineContext
from flowserver.engine.functions.call_slots import CallSlot, CallSlots
from flowserver.engine.functions.hooks import Hooks
from flowserver.engine.functions.registry import FunctionKey, FunctionRegistry, Lookup, look_up
from flowserver.engine.invocations.call_queues import CallQueues, QueueKey
from flowserver.engine.invocations.runs import Runs
from flowserver.engine.invocations.settings import AsyncSettings
from flowserver.engine.invocations.stopping import stop_all, stop_named, stop_unreadable_named
from flowserver.engine.invocations.writes import Check, Submission, insert_in
from flowserver.invokers.invocation import Endpoint, Invoker
from flowserver.machine.invocations.lifecycle import submitted
from flowserver.machine.invocations.results import result_of_invocation
from flowserver.machine.invocations.states import InvocationSettings, InvocationStatus
from flowserver.machine.messages import Failure
from flowserver.store.cluster.nodes import NO_NODE
from flowserver.store.invocations.changes import (
    InvocationDamaged,
    InvocationRow,
    find_invocations,
    stop_unreadable_invocation,
)
from flowserver.store.invocations.leases import HeldInvocation
from flowserver.store.invocations.parked import unpark_invocation
from flowserver.store.invocations.settings import find_async_settings
from flowserver.store.sql.unreadable import is_damage

log = logging.getLogger(__name__)

STOPPED_AT_ONCE = 200
"""Their payloads are in memory meanwhile."""

_NOT_FOUND = {"FC.ServiceNotFound": ServiceNotFound, "FC.FunctionNotFound": FunctionNotFound}


class NewInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be invoked, for whom. `service` is "" for a function without one, `qualifier` if none is named."""

    service: str
    qualifier: str
    function: str
    payload: bytes
    invocation_key: str
    """Whoever submits the same again gives the same key, and gets the invocation that there is."""
    request_id: str
    invocation_id: str | None = None
    """What the caller calls it; by default its request id."""
    execution_id: str | None = None
    flow_name: str = ""
    execution_name: str = ""
    step_name: str = ""
    callback_token: str | None = None
    """Of the task that waits for its end."""

    @property
    def called(self) -> FunctionKey:
        """The function, as the registry knows it."""
        return self.service, self.qualifier, self.function


class News(Protocol):
    """Who is told what others may have to know. Called in the event loop, after the commit."""

    def left_to_others(self) -> None:
        """Something is to be done that another node has in hand, or nobody has."""

    def pauses_until(self, instant_ms: int) -> None:
        """A pause ends then."""

    def is_to_be_delivered(self) -> None:
        """There is something for the destination of a result."""

    def follow(self, work: Coroutine[Any, Any, object]) -> None:
        """Do this, too; if it fails, recovery finds it again."""


class Invocations:
    """What this node has in hand. Make and use it inside one event loop."""

    def __init__(
        self,
        context: EngineContext,
        registry: FunctionRegistry,
        invoker: Invoker,
        hooks: Hooks,
        slots: CallSlots,
        callbacks: Callbacks,
        news: News,
    ) -> None:
        self._committer = context.committer
        self._reader = context.reader
        self._clock = context.clock
        self._lease = context.lease
        self._registry = registry
        self._concurrency = slots.concurrency
        self._callbacks = callbacks
        self._news = news
        self.settings = AsyncSettings(self._reader)
        self._submissions = Coalescer(self._committer, insert_in, context.limits.pending_messages_max)
        self._runs = Runs(context, registry, invoker, hooks, self._left)
        self._queues: CallQueues[str] = CallQueues(registry, slots, self._begin)
        self._held: set[str] = set()
        self._coming: Counter[FunctionKey] = Counter()

    # What others ask for

    async def submit(self, new: NewInvocation, *, check: Check | None = None) -> InvocationRow:
        """Submit an invocation; it is durable when this returns it, or the one that has its key already.

        `check` looks, in the transaction that would keep it, whether it may be, and raises what stands against it.
        Raises ServiceNotFound, FunctionNotFound, InvocationExists if its id is taken, and ResourceThrottled if too many
        of the function wait already.
        """
        endpoint = self._registry.remembered(*new.called) or await self._registry.find(*new.called)
        try:
            self._check_room(new, _found(endpoint))
        except FlowServerError:
            kept = await self._kept_before(new)
            if kept is None:
                raise
            return kept
        self._coming[new.called] += 1
        try:
            settings = await self.settings.find(new.called)
            row = await self._submissions.add(Submission(self._row(new, settings), check), bounded=True)
        finally:
            self._came(new.called)
        self.take_up([row])
        return row

    def _check_room(self, new: NewInvocation, endpoint: Endpoint) -> None:
        if self._queues.length(QueueKey.of(new.called)) + self._coming[new.called] >= self._concurrency.room(endpoint):
            raise ResourceThrottled(f"as many invocations of function '{new.function}' wait as may")

    def _came(self, function: FunctionKey) -> None:
        self._coming[function] -= 1
        if not self._coming[function]:
            del self._coming[function]

    async def _kept_before(self, new: NewInvocation) -> InvocationRow | None:
        """A step that was not told before a crash submits again, and what was kept then goes on. Others do not."""
        if new.execution_id is None:
            return None
        found = await self._reader.ask(lambda connection: find_invocations(connection, [new.invocation_key]))
        return found.get(new.invocation_key)

    def submit_in(self, connection: Connection, new: NewInvocation) -> InvocationRow:
        """The like as part of another change: `take_up` what it returns once that is durable. Makes nobody wait."""
        _found(look_up(connection, new.called))
        row = self._row(new, find_async_settings(connection, *new.called))
        [kept] = insert_in(connection, [Submission(row)])
        if isinstance(kept, Exception):
            raise kept
        return kept

    def take_up(self, rows: Iterable[InvocationRow]) -> None:
        """Go on with those of them that are in this node's hands, by what was just committed."""
        for row in rows:
            if row.node_id is None or row.invocation_key in self._held:
                continue  # it has ended, or pauses, or is here already
            if row.node_id == self._lease.node_id:
                self._runs.keep(row)
                self._join((row.service, row.qualifier, row.function), row.invocation_key)
            elif row.node_id == NO_NODE:  # this node is leaving
                self._news.left_to_others()

    async def stop(self, service: str, function: str, invocation_id: str) -> InvocationRow | None:
        """Stop an invocation; if its function is being called, it ends a little later. Returns how it is now, None for
        one that could not be read, which has ended.

        Raises InvocationNotExists, and InvalidArgument if it has ended.
        """
        now, names = self._clock.now_ms(), (service, function, invocation_id)
        try:
            found = await self._committer.write(lambda c: stop_named(c, *names, now), bounded=True)
        except (InvocationDamaged, DBAPIError) as error:
            empty_payload = isinstance(error, DBAPIError)
            if empty_payload and not is_damage(error):
                raise
            await self._committer.write(
                lambda c: stop_unreadable_named(c, *names, now, empty_payload=empty_payload), bounded=True
            )
            self._news.left_to_others()  # recovery tells the task that waits for its end
            return None
        if found is None:
            raise InvocationNotExists(f"function '{function}' has no invocation '{invocation_id}'")
        before, after = found
        if before.state.is_over:
            raise InvalidArgument(f"invocation '{invocation_id}' has ended: {before.state.status}")
        self._note_stopped([after])
        return after

    async def stop_all(self, keys: Sequence[str]) -> None:
        """Stop what a committed turn wants stopped; those that have ended, or are not there, stay as they are.

        One execution may have submitted very many: so many in one commit neither fill the memory nor hold the writer.
        """
        for first in range(0, len(keys), STOPPED_AT_ONCE):
            await self._stop_some(keys[first : first + STOPPED_AT_ONCE])

    async def _stop_some(self, keys: Sequence[str]) -> None:
        """If the database cannot read one of them, each is stopped alone."""
        now = self._clock.now_ms()
        try:
            self._note_stopped(await self._committer.write(partial(stop_all, keys=keys, now_ms=now)))
        except DBAPIError as error:
            if not is_damage(error):
                raise
            if len(keys) == 1:
                change = partial(stop_unreadable_invocation, key=keys[0], now_ms=now, empty_payload=True)
                await self._committer.write(change)
                return
            for key in keys:
                await self._stop_some([key])

    async def unpark(self, service: str, function: str, invocation_id: str) -> bool:
        """Go on with a parked invocation, where it was; False if it is not parked, or there is none of that id.

        It is parked again if what it met is still there.
        """
        was_parked = False

        def change(connection: Connection) -> HeldInvocation | None:
            nonlocal was_parked
            held = unpark_invocation(connection, service, function, invocation_id, self._lease.holder)
            was_parked |= held is not None
            return held

        held = await self._committer.write(change, bounded=True)
        if held is not None and not self._lease.is_leaving:
            self.take_over([held])
        else:
            self._news.left_to_others()
        return was_parked  # perhaps at a first try, whose commit came through although its answer was lost

    # What recovery asks for

    def take_over(self, held: Iterable[HeldInvocation]) -> None:
        """Go on with what the rows say is in this node's hands."""
        for each in held:
            if each.invocation_key in self._held:
                continue
            if each.status == InvocationStatus.STOPPING or not each.is_legible:  # one that only ends needs no slot
                self._held.add(each.invocation_key)
                self._runs.begin(each.invocation_key, None)
            else:
                self._join((each.service, each.qualifier, each.function), each.invocation_key)

    def holds(self, key: str) -> bool:
        """Whether the invocation waits or is under way here."""
        return key in self._held

    @property
    def under_way(self) -> list[str]:
        """Keys of those whose turn has come."""
        return self._runs.keys

    @property
    def waiting(self) -> int:
        """How many wait for their turn here."""
        return self._queues.waiting

    def notice_stopping(self, keys: Iterable[str]) -> None:
        """Others are stopping these."""
        for key in keys:
            run = self._runs.find(key)
            if run is not None:
                run.stop()

    def tell(self, row: InvocationRow) -> None:
        """Tell the task that waits for the end of an ended one."""
        if row.callback_due and row.callback_token is not None:
            result = result_of_invocation(row.state)
            self._news.follow(self._callbacks.deliver_invocation(row.invocation_key, row.callback_token, result))

    def send_away(self, keeps: Callable[[str], bool], limit: int) -> list[str]:
        """Let go of up to `limit` that cannot begin at once, of none that `keeps` is true for; returns their keys."""
        gone = self._queues.send_away(keeps, limit)
        self._held.difference_update(gone)
        for key in gone:
            self._runs.forget(key)
        return gone

    # The node's own life

    def leave(self) -> None:
        """Begin no more; those that wait are left to others."""
        self._queues.close()

    async def drain(self, seconds: float) -> None:
        """Wait for those under way, then drop the rest: whoever takes them over makes their calls again."""
        self._queues.close()
        await self._runs.drain(seconds)

    def abandon(self) -> None:
        """The lease was lost: whatever is here is others' now."""
        self._queues.clear()
        self._runs.drop()
        self._held.clear()

    def _row(self, new: NewInvocation, settings: InvocationSettings) -> InvocationRow:
        return InvocationRow(
            invocation_key=new.invocation_key,
            service=new.service,
            qualifier=new.qualifier,
            function=new.function,
            invocation_id=new.invocation_id or new.request_id,
            request_id=new.request_id,
            node_id=self._lease.holder,
            state=submitted(settings, self._clock.now_ms()),
            payload=new.payload,
            execution_id=new.execution_id,
            flow_name=new.flow_name,
            execution_name=new.execution_name,
            step_name=new.step_name,
            callback_token=new.callback_token,
        )

    def _join(self, function: FunctionKey, key: str) -> None:
        self._held.add(key)
        self._queues.join(QueueKey.of(function), key)

    def _begin(self, key: str, slot: CallSlot) -> None:
        if key not in self._held or self._runs.find(key) is not None:  # it was stopped before its turn came
            slot.release()
        else:
            self._runs.begin(key, slot)

    def _left(self, key: str, row: InvocationRow | None) -> None:
        self._held.discard(key)
        if row is None:
            return
        if row.state.is_over:
            self._note_ended(row)
        elif row.state.wake_at is not None:
            self._news.pauses_until(row.state.wake_at)

    def _note_stopped(self, rows: Iterable[InvocationRow]) -> None:
        for row in rows:
            run = self._runs.find(row.invocation_key)
            if row.state.is_over:
                if run is None:  # it makes room for another
                    self._queues.drop(QueueKey.of((row.service, row.qualifier, row.function)), row.invocation_key)
                    self._runs.forget(row.invocation_key)
                    self._held.discard(row.invocation_key)
                self._note_ended(row)
            elif run is not None:
                run.stop()
            elif row.node_id == self._lease.node_id:  # it waits here to be called again
                self._held.add(row.invocation_key)
                self._runs.begin(row.invocation_key, None)
            else:
                self._news.left_to_others()

    def _note_ended(self, row: InvocationRow) -> None:
        self.tell(row)
        settings = row.state.settings
        if settings.on_success or settings.on_failure:
            self._news.is_to_be_delivered()


def _found(endpoint: Lookup) -> Endpoint:
    if isinstance(endpoint, Failure):
        raise _NOT_FOUND.get(endpoint.error, InternalServerError)(endpoint.cause)
    return endpoint
