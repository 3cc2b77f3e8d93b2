"""Has the calls made that committed turns order, each when it has a slot, and submits their results as messages.

A call is made at least once: if this process dies, another node makes it again under the same idempotency key.
"""

import asyncio
from collections.abc import Callable

from flowserver.concurrency.shutdown import drain
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.context import EngineContext
from flowserver.engine.executions.call_reader import CallReader, OrderedCall
from flowserver.engine.executions.step_calls import StepCalls, TaskResult
from flowserver.engine.functions.call_queues import KEPT_BYTES_MAX, KEPT_MAX, CallQueues, QueueKey
from flowserver.engine.functions.call_slots import CallSlot, CallSlots
from flowserver.engine.functions.endpoint_lookup import EndpointLookup
from flowserver.language.graph import (
    ActionTarget,
    FunctionTarget,
)
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.messages import Failure, TaskReplied
from flowserver.store.executions.due import TaskKey


class Dispatcher:
    """Runs one coroutine per call under way, at most as many as there are `slots`.

    Of a waiting call it holds the key, and the command of up to KEPT_MAX small ones.
    """

    def __init__(self, context: EngineContext, endpoints: EndpointLookup, slots: CallSlots, made: StepCalls) -> None:
        self._committer = context.committer
        self._lease = context.lease
        self._made = made
        self._orders = CallReader(context)
        self._queues: CallQueues[TaskKey] = CallQueues(endpoints, slots, self._slot_granted, self._refuse)
        self._calls: dict[TaskKey, asyncio.Task[None]] = {}
        self._queue_of: dict[TaskKey, QueueKey] = {}
        self._kept_orders: dict[TaskKey, OrderedCall] = {}
        self._reported: set[TaskKey] = set()
        """Of those under way: calls whose steps do not wait any more, and which may go on to their own ends."""
        self._draining = False

    def dispatch(self, caller: Caller, command: InvokeTask, size: int = 0) -> None:
        """Make a task's call, unless a call of the same attempt is under way or waits already.

        `size` is that of the step's documents in bytes: large ones are not kept while the call waits for a slot.
        """
        key = (caller.execution_id, command.scope_id, command.wait_id)
        if self._draining or key in self._calls or key in self._queue_of:
            return
        queue = _queue_key(caller, command)
        slot = self._queues.take_now(queue)
        if slot is not None:
            self._begin(key, slot, (caller, command))
            return
        self._queue_of[key] = queue
        if len(self._kept_orders) < KEPT_MAX and size <= KEPT_BYTES_MAX:
            self._kept_orders[key] = caller, command
        self._queues.join(queue, key)

    def cancel(self, key: TaskKey, *, unless_begun: bool = False) -> bool:
        """Drop a call that no step waits for any more; returns False if this node does not have it.

        With `unless_begun` a call that is under way goes on to its own end, and no later order drops it.
        """
        call = self._calls.get(key)
        if call is not None:
            if unless_begun:
                self._reported.add(key)
            elif key not in self._reported:
                call.cancel()
            return True
        queue = self._forget_waiting(key)
        if queue is None:
            return False
        self._queues.drop(queue, key)
        return True

    def drop_all(self) -> None:
        """Drop all calls after the lease was lost: other nodes make them again, and replies to this node are stale."""
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()
        self._reported.clear()
        self._queues.clear()
        self._queue_of.clear()
        self._kept_orders.clear()

    def begin_no_more(self) -> None:
        """Begin no more calls; those that wait for a slot are left to other nodes."""
        self._draining = True
        self._queues.close()
        self._queue_of.clear()
        self._kept_orders.clear()

    def release_waiting(self, keeps: Callable[[str], bool], limit: int) -> list[TaskKey]:
        """Drop up to `limit` calls that wait for a slot, of executions for which `keeps(execution_id)` is false."""
        released = self._queues.send_away(lambda key: keeps(key[0]), limit)
        for key in released:
            self._forget_waiting(key)
        return released

    def has_begun(self, key: TaskKey) -> bool:
        """Whether the attempt's call is under way, so that it no longer waits for a slot."""
        return key in self._calls

    @property
    def held(self) -> list[TaskKey]:
        """Calls that are under way, or wait with their commands in memory, and that a step must wait for.

        The other calls that wait are read again when they get a slot, and dropped if no step waits for them by then.
        """
        return [*(key for key in self._calls if key not in self._reported), *self._kept_orders]

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a slot."""
        return len(self._queue_of)

    def needs_no_dispatch(self, key: TaskKey) -> bool:
        """Whether the attempt's call is under way or waits here, or is left to other nodes because this one leaves."""
        return self._draining or key in self._calls or key in self._queue_of

    async def drain(self, seconds: float) -> None:
        """Begin no more calls, wait `seconds` for those under way, and drop the rest. Other nodes make them."""
        self.begin_no_more()
        await drain(list(self._calls.values()), seconds)

    def _begin(self, key: TaskKey, slot: CallSlot, order: OrderedCall | None) -> None:
        call = asyncio.create_task(self._call(key, order, slot), name=f"call of {key[0]}")
        self._calls[key] = call
        call.add_done_callback(lambda _: self._forget(key, call, slot))

    def _slot_granted(self, key: TaskKey, slot: CallSlot) -> None:
        order = self._kept_orders.get(key)
        self._forget_waiting(key)
        self._begin(key, slot, order)

    def _refuse(self, key: TaskKey, cause: str) -> None:
        """Fail a call because its function's limit of waiting calls is reached."""
        self._forget_waiting(key)
        refused = TaskResult(Failure("FC.ResourceExhausted", cause))
        call = asyncio.create_task(self._report(key, refused, self._lease.node_id))
        self._calls[key] = call
        call.add_done_callback(lambda _: self._forget(key, call))

    def _forget_waiting(self, key: TaskKey) -> QueueKey | None:
        self._kept_orders.pop(key, None)
        return self._queue_of.pop(key, None)

    def _forget(self, key: TaskKey, call: asyncio.Task[None], slot: CallSlot | None = None) -> None:
        """Forget a call that is over, unless the same attempt has been ordered again."""
        if slot is not None:
            slot.release()  # it still holds the slot if it was cancelled before it ran
        if self._calls.get(key) is call:
            del self._calls[key]
            self._reported.discard(key)

    async def _call(self, key: TaskKey, order: OrderedCall | None, slot: CallSlot) -> None:
        lease = self._lease.node_id
        try:
            order = order or await self._orders.read(key)
            if order is None:
                return  # no step waits for it, or its rows are damaged, which recovery finds
            outcome = await self._made.make(*order)
        finally:
            slot.release()
        await self._report(key, outcome, lease)

    async def _report(self, key: TaskKey, outcome: TaskResult, lease: str) -> None:
        envelope = Envelope(key[0], TaskReplied(key[1], key[2], *outcome), lease=lease)
        await retry_until_available(
            lambda: self._committer.submit(envelope)
        )  # a second copy would be stale and do no harm


def _queue_key(caller: Caller, command: InvokeTask) -> QueueKey:
    match command.target:
        case FunctionTarget(_, service, qualifier, function) if not command.asynchronous:
            return QueueKey(caller.flow_name, (service, qualifier, function))
        case ActionTarget(action, service, api):
            called = (service, "", api) if service != "fnf" else (action,)
            return QueueKey(caller.flow_name, called, is_function=service != "fnf")
        case target:
            return QueueKey(caller.flow_name, (target.arn,), is_function=False)
