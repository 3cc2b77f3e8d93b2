"""Asynchronous invocations (Serverless Tasks) of this node: submitted, waiting, under way, stopped, ended.

An invocation is its row, which names the node that holds it; this memory only helps the holder to continue it. The
transaction that ends an invocation also stores what must follow, so a crash at any point loses nothing.
"""

import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from flowserver.base.errors import (
    FlowServerError,
    InternalServerError,
    InvalidArgument,
    InvocationNotExists,
    ResourceThrottled,
)
from flowserver.concurrency.coalescer import Coalescer
from flowserver.concurrency.expiring_cache import ExpiringCache
from flowserver.engine.context import EngineContext
from flowserver.engine.functions.call_queues import CallQueues, QueueKey
from flowserver.engine.functions.call_slots import CallSlot, CallSlots
from flowserver.engine.functions.endpoint_lookup import (
    CACHED_MAX,
    CACHED_SECONDS,
    EndpointLookup,
    FunctionKey,
    Lookup,
    look_up,
)
from flowserver.engine.invocations.runs import Runs
from flowserver.engine.reports_to_waiting_tasks import Callbacks
from flowserver.invokers.calls import Endpoint, Invoker
from flowserver.invokers.error_names import REFUSALS
from flowserver.invokers.hooks import Hooks
from flowserver.machine.invocations.lifecycle import submitted
from flowserver.machine.invocations.result_of_ended_invocation import result_of_invocation
from flowserver.machine.invocations.states import InvocationSettings, InvocationStatus
from flowserver.machine.messages import Failure
from flowserver.store.cluster.nodes import NO_NODE
from flowserver.store.invocations.async_settings import find_async_settings
from flowserver.store.invocations.leases import HeldInvocation
from flowserver.store.invocations.parking import unpark_invocation
from flowserver.store.invocations.rows import (
    InvocationDamaged,
    InvocationRow,
    find_invocations,
    stop_unreadable_invocation,
)
from flowserver.store.invocations.stops import stop_all, stop_named, stop_unreadable_named
from flowserver.store.invocations.submissions import Check, NewInvocation, Submission, insert_in
from flowserver.store.sql.unreadable import is_damage

log = logging.getLogger(__name__)

STOPPED_AT_ONCE = 200
"""Invocations in one transaction, whose payloads are in memory meanwhile."""

Unparked = tuple[HeldInvocation | None, bool]
"""The invocation, if this try has unparked it; whether this try or an earlier one has."""


class InvocationListener(Protocol):
    """The part of the engine that acts on changes of invocations. Called in the event loop, after the commit."""

    def left_to_others(self) -> None:
        """An invocation that another node holds, or none, needs work."""

    def pauses_until(self, instant_ms: int) -> None:
        """The pause before a retry ends at this instant."""

    def is_to_be_delivered(self) -> None:
        """A result is to be delivered to its destination."""

    def follow(self, work: Coroutine[Any, Any, object]) -> None:
        """Run this work in the background; if it fails, recovery finds it again."""


class Invocations:
    """The invocations that this node holds. Make and use it inside one event loop."""

    def __init__(
        self,
        context: EngineContext,
        endpoints: EndpointLookup,
        invoker: Invoker,
        hooks: Hooks,
        slots: CallSlots,
        callbacks: Callbacks,
        listener: InvocationListener,
    ) -> None:
        self._committer = context.committer
        self._reader = context.reader
        self._clock = context.clock
        self._lease = context.lease
        self._endpoints = endpoints
        self._function_limits = slots.function_limits
        self._callbacks = callbacks
        self._listener = listener
        self.settings = ExpiringCache(self._read_settings, seconds=CACHED_SECONDS, keys_max=CACHED_MAX)
        """The settings of functions with their qualifiers; the defaults if none are stored."""
        self._submissions = Coalescer(self._committer, insert_in, context.limits.pending_messages_max)
        self._runs = Runs(context, endpoints, invoker, hooks, self._left)
        self._queues: CallQueues[str] = CallQueues(endpoints, slots, self._begin)
        self._held: set[str] = set()
        self._coming: Counter[FunctionKey] = Counter()

    # For callers

    async def submit(self, new: NewInvocation, *, check: Check | None = None) -> InvocationRow:
        """Submit an invocation. Returns it, or the earlier one with its key, once it is durable.

        `check` runs in the transaction that stores it, and raises an error to prevent that. Raises ServiceNotFound,
        FunctionNotFound, InvocationExists if its id is taken; and ResourceThrottled for a caller, but not for a step of
        a running execution, if too many invocations of the function, or messages for the writer, wait.
        """
        by_caller = new.execution_id is None
        endpoint = await self._endpoints.find(*new.called)
        try:
            found = _found(endpoint)
            if by_caller:
                self._check_room(new, found)
        except FlowServerError:
            kept = await self._kept_before(new)
            if kept is None:
                raise
            return kept
        self._coming[new.called] += 1
        try:
            settings = await self.settings.find(new.called)
            row = await self._submissions.add(self._submission(new, settings, check), by_caller=by_caller)
        finally:
            self._came(new.called)
        self.take_up([row])
        return row

    def _check_room(self, new: NewInvocation, endpoint: Endpoint) -> None:
        waiting = self._queues.length(QueueKey.of(new.called)) + self._coming[new.called]
        if waiting >= self._function_limits.room(endpoint):
            raise ResourceThrottled(f"too many invocations of function '{new.function}' wait")

    def _came(self, function: FunctionKey) -> None:
        self._coming[function] -= 1
        if not self._coming[function]:
            del self._coming[function]

    async def _kept_before(self, new: NewInvocation) -> InvocationRow | None:
        """The invocation that a step submitted before a crash lost the reply; None for submissions of other callers."""
        if new.execution_id is None:
            return None
        found = await self._reader.ask(lambda connection: find_invocations(connection, [new.invocation_key]))
        return found.get(new.invocation_key)

    def submit_in(self, connection: Connection, new: NewInvocation) -> InvocationRow:
        """Submit as part of another transaction, with no limit on waiting; `take_up` the result after its commit."""
        _found(look_up(connection, new.called))
        [kept] = insert_in(connection, [self._submission(new, find_async_settings(connection, *new.called))])
        if isinstance(kept, Exception):
            raise kept
        return kept

    def take_up(self, rows: Iterable[InvocationRow]) -> None:
        """Queue those of these rows, as just committed, that this node holds."""
        for row in rows:
            if row.node_id is None or row.invocation_key in self._held:
                continue  # it has ended, pauses, or is queued already
            if row.node_id == self._lease.node_id:
                self._runs.keep(row)
                self._join(row.called, row.invocation_key)
            elif row.node_id == NO_NODE:  # this node is leaving
                self._listener.left_to_others()

    async def stop(self, service: str, function: str, invocation_id: str) -> InvocationRow | None:
        """Stop an invocation; if its function is being called, it ends a little later. Returns its new row, or None for
        a row that cannot be read: it has then ended.

        Raises InvocationNotExists, and InvalidArgument if it had ended before.
        """
        now, names = self._clock.now_ms(), (service, function, invocation_id)
        try:
            found = await self._committer.write_once(
                lambda connection, earlier: stop_named(connection, *names, now, earlier), by_caller=True
            )
        except (InvocationDamaged, DBAPIError) as error:
            empty_payload = isinstance(error, DBAPIError)
            if empty_payload and not is_damage(error):
                raise
            await self._committer.write(
                lambda c: stop_unreadable_named(c, *names, now, empty_payload=empty_payload), by_caller=True
            )
            self._listener.left_to_others()  # recovery reports to the task that waits for its end
            return None
        if found is None:
            raise InvocationNotExists(f"function '{function}' has no invocation '{invocation_id}'")
        before, after = found
        if before.state.is_over:
            raise InvalidArgument(f"invocation '{invocation_id}' has ended: {before.state.status}")
        self._note_stopped([after])
        return after

    async def stop_all(self, keys: Sequence[str]) -> None:
        """Stop the invocations that a committed turn wants stopped. Ended and missing ones are skipped.

        One execution may have submitted very many. Portions keep the memory small and the writer free for others.
        """
        for first in range(0, len(keys), STOPPED_AT_ONCE):
            await self._stop_some(keys[first : first + STOPPED_AT_ONCE])

    async def _stop_some(self, keys: Sequence[str]) -> None:
        """Stop them in one transaction, or each alone if the database cannot read one of them."""
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
        """Continue a parked invocation from its stored state. False if it is not parked or does not exist.

        If the cause of the failure remains, it is parked again.
        """

        def change(connection: Connection, earlier: Unparked | None) -> Unparked:
            held = unpark_invocation(connection, service, function, invocation_id, self._lease.holder)
            return held, held is not None or (earlier is not None and earlier[1])

        held, was_parked = await self._committer.write_once(change, by_caller=True)
        if held is not None and not self._lease.is_leaving:
            self.take_over([held])
        else:
            self._listener.left_to_others()
        return was_parked

    # For recovery

    def take_over(self, held: Iterable[HeldInvocation]) -> None:
        """Continue invocations whose rows name this node as the holder."""
        for each in held:
            if each.invocation_key in self._held:
                continue
            if each.status == InvocationStatus.STOPPING or not each.is_legible:  # to end it needs no slot
                self._held.add(each.invocation_key)
                self._runs.begin(each.invocation_key, None)
            else:
                self._join(each.called, each.invocation_key)

    def holds(self, key: str) -> bool:
        """Whether the invocation waits or runs on this node."""
        return key in self._held

    @property
    def under_way(self) -> list[str]:
        """Keys of the invocations that run here."""
        return self._runs.keys

    @property
    def waiting(self) -> int:
        """How many wait in this node's queues."""
        return self._queues.waiting

    def notice_stopping(self, keys: Iterable[str]) -> None:
        """Drop the calls of these invocations, which other nodes are stopping."""
        for key in keys:
            run = self._runs.find(key)
            if run is not None:
                run.stop()

    def tell(self, row: InvocationRow) -> None:
        """Report an ended invocation to the task that waits for it, if any."""
        if row.callback_due and row.callback_token is not None:
            result = result_of_invocation(row.state)
            self._listener.follow(self._callbacks.deliver_invocation(row.invocation_key, row.callback_token, result))

    def send_away(self, keeps: Callable[[str], bool], limit: int) -> list[str]:
        """Remove and return up to `limit` waiting keys for which `keeps` is false; none while slots are free."""
        gone = self._queues.send_away(keeps, limit)
        self._held.difference_update(gone)
        for key in gone:
            self._runs.forget(key)
        return gone

    # Stopping the node

    def begin_no_more(self) -> None:
        """Begin no more; waiting invocations are left to other nodes."""
        self._queues.close()

    async def drain(self, seconds: float) -> None:
        """Wait for running invocations, then cancel the rest: the node that takes them over repeats their calls."""
        self._queues.close()
        await self._runs.drain(seconds)

    def drop_all(self) -> None:
        """The lease was lost: drop everything, since other nodes hold it now."""
        self._queues.clear()
        self._runs.drop()
        self._held.clear()

    async def _read_settings(self, function: FunctionKey) -> InvocationSettings:
        return await self._reader.ask(lambda connection: find_async_settings(connection, *function))

    def _submission(self, new: NewInvocation, settings: InvocationSettings, check: Check | None = None) -> Submission:
        return Submission(new.row(self._lease.holder, submitted(settings, self._clock.now_ms())), check)

    def _join(self, function: FunctionKey, key: str) -> None:
        self._held.add(key)
        self._queues.join(QueueKey.of(function), key)

    def _begin(self, key: str, slot: CallSlot) -> None:
        if key not in self._held or self._runs.find(key) is not None:  # it was stopped while it waited
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
            self._listener.pauses_until(row.state.wake_at)

    def _note_stopped(self, rows: Iterable[InvocationRow]) -> None:
        for row in rows:
            run = self._runs.find(row.invocation_key)
            if row.state.is_over:
                if run is None:  # it frees its place in the queue
                    self._queues.drop(QueueKey.of(row.called), row.invocation_key)
                    self._runs.forget(row.invocation_key)
                    self._held.discard(row.invocation_key)
                self._note_ended(row)
            elif run is not None:
                run.stop()
            elif row.node_id == self._lease.node_id:  # it waits here for its first call
                self._held.add(row.invocation_key)
                self._runs.begin(row.invocation_key, None)
            else:
                self._listener.left_to_others()

    def _note_ended(self, row: InvocationRow) -> None:
        self.tell(row)
        settings = row.state.settings
        if settings.on_success or settings.on_failure:
            self._listener.is_to_be_delivered()


def _found(endpoint: Lookup) -> Endpoint:
    if isinstance(endpoint, Failure):
        raise REFUSALS.get(endpoint.error, InternalServerError)(endpoint.cause)
    return endpoint
