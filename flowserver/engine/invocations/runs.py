"""Runs asynchronous invocations, each in a coroutine of its own, from the first slot to a pause or the end.

Every step is committed before the next begins. If another writer has changed the row, the run continues from the
changed row. An invocation that fails inside the server, or whose row cannot be read or written, is parked: another
attempt would call its function once more, and fail again. It keeps its state, and an operator restarts or stops it.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from flowserver.base.errors import ResourceThrottled
from flowserver.base.limited_log import INVOCATION_CALL_FAILED, LimitedLog
from flowserver.base.limits import Limits
from flowserver.concurrency.coalescer import Coalescer
from flowserver.concurrency.shutdown import drain
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.context import EngineContext
from flowserver.engine.functions.call_queues import KEPT_BYTES_MAX, KEPT_MAX
from flowserver.engine.functions.call_slots import CallSlot
from flowserver.engine.functions.endpoint_lookup import EndpointLookup, Lookup
from flowserver.invokers.calls import Endpoint, Invocation, Invoker
from flowserver.invokers.hooks import Hooks
from flowserver.invokers.outcomes import outcome_of_attempt
from flowserver.machine.invocations.lifecycle import (
    AttemptBegan,
    AttemptFailed,
    AttemptSucceeded,
    CallEnded,
    Dequeued,
    FunctionUnavailable,
    InvocationMessage,
    StopAsked,
)
from flowserver.machine.invocations.states import InvocationStatus
from flowserver.machine.messages import Failure
from flowserver.store.invocations.parking import park_invocation
from flowserver.store.invocations.row_changes import change_by, save_in
from flowserver.store.invocations.rows import (
    InvocationChanged,
    InvocationDamaged,
    InvocationRow,
    find_invocations,
)
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.unreadable import storable

log = logging.getLogger(__name__)


class Run:
    """One running invocation."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.task: asyncio.Task[None] | None = None
        self.is_calling = False
        self.is_stopping = False

    def stop(self) -> None:
        """Drop its call, if there is one: the invocation is being stopped."""
        if not self.is_stopping:
            self.is_stopping = True
            if self.is_calling and self.task is not None:
                self.task.cancel()


class Runs:
    """The invocations that run on this node."""

    def __init__(
        self,
        context: EngineContext,
        endpoints: EndpointLookup,
        invoker: Invoker,
        hooks: Hooks,
        left: Callable[[str, InvocationRow | None], None],
    ) -> None:
        """`left` is called when a run ends, with the invocation's key and its last known row or None."""
        self._committer = context.committer
        self._reader = context.reader
        self._clock = context.clock
        self._limits = context.limits
        self._lease = context.lease
        self._changes = Coalescer(context.committer, save_in, context.limits.pending_messages_max)
        self._endpoints = endpoints
        self._invoker = invoker
        self._hooks = hooks
        self._left = left
        self._runs: dict[str, Run] = {}
        self._kept: dict[str, InvocationRow] = {}
        self._failures = LimitedLog(log)

    def keep(self, row: InvocationRow) -> None:
        """Keep the row, as just committed, for its run."""
        if len(self._kept) < KEPT_MAX and len(row.payload) <= KEPT_BYTES_MAX:
            self._kept[row.invocation_key] = row

    def forget(self, key: str) -> None:
        """Drop the kept row: it will not run here."""
        self._kept.pop(key, None)

    def begin(self, key: str, slot: CallSlot | None) -> None:
        """Start a run. `slot` is None for an invocation that is being stopped: it makes no call."""
        run = self._runs[key] = Run(key)
        run.task = asyncio.create_task(self._run(run, slot), name=f"invocation {key}")

    def find(self, key: str) -> Run | None:
        """The invocation's run, if there is one."""
        return self._runs.get(key)

    @property
    def keys(self) -> list[str]:
        """The keys of the running invocations."""
        return list(self._runs)

    def drop(self) -> None:
        """Cancel all runs; other nodes repeat them."""
        for run in list(self._runs.values()):
            if run.task is not None:
                run.task.cancel()
        self._runs.clear()
        self._kept.clear()

    async def drain(self, seconds: float) -> None:
        """Wait for the runs, then cancel the rest."""
        await drain([run.task for run in self._runs.values() if run.task is not None], seconds)

    async def _run(self, run: Run, slot: CallSlot | None) -> None:
        row: InvocationRow | None = None
        try:
            row = self._kept.pop(run.key, None) or await self._load(run.key)
            while row is not None and self._is_held(row):
                row = await self._advance(run, row, slot)
        except ResourceThrottled:  # the server is stopping: another node continues it
            form = "invocation %(invocation_key)s is left to another node: the server is stopping"
            log.warning(form, {"invocation_key": run.key})
        except Exception as error:  # our bug, or an unreadable row: a retry would call again
            if slot is not None:
                slot.release()
            row = None
            await self._park(run.key, error)
        finally:
            if slot is not None:
                slot.release()
            if self._runs.get(run.key) is run:
                del self._runs[run.key]
                self._left(run.key, row)

    def _is_held(self, row: InvocationRow) -> bool:
        return row.node_id == self._lease.node_id and not row.state.is_over

    async def _load(self, key: str) -> InvocationRow:
        """The stored row; raises InvocationDamaged, or the database's error, if it cannot be read."""
        question = partial(find_invocations, keys=[key])
        found = await retry_until_available(lambda: self._reader.ask(question), gives_up=True)
        if key not in found:
            raise InvocationDamaged("the stored invocation is gone or makes no sense; the server's log says why")
        return found[key]

    async def _park(self, key: str, error: Exception) -> None:
        """Park it. If this commit succeeds, the database works and only the invocation is damaged."""
        log.error("invocation %(invocation_key)s is parked", {"invocation_key": key}, exc_info=error)
        reason, node_id = storable(f"{type(error).__name__}: {reason_of(error)}"), self._lease.node_id
        try:
            await retry_until_available(
                lambda: self._committer.write(lambda c: park_invocation(c, key, node_id, reason))
            )
        except Exception:  # recovery finds that this node holds it without running it, and retries
            log.exception("cannot park invocation %(invocation_key)s", {"invocation_key": key})

    async def _advance(self, run: Run, row: InvocationRow, slot: CallSlot | None) -> InvocationRow | None:
        """Make the next commit, with the call before it if there is one; returns the row after it."""
        if run.is_stopping and row.state.status is not InvocationStatus.STOPPING:
            return await self._change(row, StopAsked())  # the stop may not be committed yet
        endpoint = await retry_until_available(lambda: self._endpoints.find(*row.called), gives_up=True)
        if row.state.status is InvocationStatus.STOPPING:
            if isinstance(endpoint, Endpoint):
                await self._hooks.pre_stop(endpoint, row.request_id)
            return await self._change(row, CallEnded())
        if slot is None:
            return None  # the stop was completed elsewhere
        begun = await self._begin_attempt(row, endpoint)
        if begun is None or begun.state.status is not InvocationStatus.RUNNING or not self._is_held(begun):
            return begun
        outcome = await self._call(run, begun, endpoint)
        slot.release()
        if outcome is None:
            return await self._load(run.key)
        return await self._change(begun, outcome)

    async def _begin_attempt(self, row: InvocationRow, endpoint: Lookup) -> InvocationRow | None:
        """Begin the next attempt, or end the invocation: one commit if the function is initialized."""
        refused = endpoint if isinstance(endpoint, Failure) else None
        if isinstance(endpoint, Endpoint) and not self._hooks.is_initialized(endpoint):
            taken = await self._change(row, Dequeued())
            if taken is None or not self._is_held(taken) or taken.state.status is InvocationStatus.STOPPING:
                return taken
            row, refused = taken, await self._hooks.initialize(endpoint, row.request_id)
        if refused is None:
            return await self._change(row, Dequeued(), AttemptBegan())
        if row.state.attempt:  # a retry: the attempt fails
            return await self._change(row, AttemptBegan(), AttemptFailed(refused.error, refused.cause, 0))
        return await self._change(row, Dequeued(), FunctionUnavailable(refused.error, refused.cause))

    async def _change(self, row: InvocationRow, *messages: InvocationMessage) -> InvocationRow | None:
        """Commit these changes. Returns the new row, or the stored one if another writer came first."""
        change = change_by(row, messages, self._clock.now_ms())
        if change.after is row:
            return row
        try:
            return await retry_until_available(lambda: self._changes.add(change), gives_up=True)
        except InvocationChanged:  # by another writer, or by an earlier attempt of this commit
            return await self._load(row.invocation_key)

    async def _call(self, run: Run, row: InvocationRow, endpoint: Lookup) -> AttemptSucceeded | AttemptFailed | None:
        """Call the function; None if the call was dropped because the invocation is being stopped."""
        assert isinstance(endpoint, Endpoint)
        if run.is_stopping:
            return None
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        call = _call_of(row, self._limits)
        run.is_calling = True
        try:
            reply = await self._invoker.exchange(call, endpoint)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not run.is_stopping or task is None or task.uncancel():
                raise
            return None
        finally:
            run.is_calling = False
        outcome = outcome_of_attempt(call, reply, round((loop.time() - began_at) * 1000), self._limits)
        if isinstance(outcome, AttemptFailed):
            ids = {"request_id": row.request_id, "invocation_id": row.invocation_id, "attempt": call.attempt}
            values = {"function": call.title, "error": outcome.error, **ids}
            self._failures.write(logging.INFO, call.title, INVOCATION_CALL_FAILED, values)
        return outcome


def _call_of(row: InvocationRow, limits: Limits) -> Invocation:
    """The call of the attempt that has begun."""
    return Invocation(
        service=row.service,
        qualifier=row.qualifier,
        function=row.function,
        event=row.payload,
        invocation_id=row.invocation_id,
        idempotency_key=row.invocation_key,
        attempt=row.state.attempt,
        timeout_ms=limits.function_seconds_max * 1000,
        flow_name=row.flow_name,
        execution_name=row.execution_name,
        step_name=row.step_name,
        request_id=row.request_id,
        traceparent=row.traceparent or "",
    )
