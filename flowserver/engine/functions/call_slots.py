"""Slots for the calls under way on this node: every call holds one, whether of a step, an invocation or a caller.

A function with a limit of its own (`function_limits.py`) has slots too. A call takes its function's slot first, since
while it waits for that it keeps no other function waiting; and then one of the node, in which callees and flows have
shares (`concurrency/keyed_semaphore.py`).
"""

import asyncio
from collections.abc import Callable

from flowserver.base.limits import Limits
from flowserver.concurrency.keyed_semaphore import KeyedSemaphore
from flowserver.engine.functions.function_limits import FunctionLimits

Callee = tuple[str, ...]
"""What is called: a function as it is registered, or another target by its name."""


class CallSlot:
    """A slot of the node and, if the function has a limit, one of the function."""

    def __init__(self, slots: KeyedSemaphore, flow_name: str, callee: Callee, limit: KeyedSemaphore | None) -> None:
        """Both are taken already, the node's under these keys."""
        self._slots = slots
        self._keys = flow_name, callee
        self._limit = limit
        self._is_held = True

    def release(self) -> None:
        """Give it back; a second time has no effect."""
        if self._is_held:
            self._is_held = False
            self._slots.release(*self._keys)
            if self._limit is not None:
                self._limit.release()


class CallSlots:
    """The slots of this node and of its functions."""

    def __init__(self, limits: Limits, nodes: Callable[[], int]) -> None:
        """`nodes` says how many nodes there are; they share the slots of functions."""
        self.function_limits = FunctionLimits(limits, nodes)
        self._slots = KeyedSemaphore(limits.invocations_in_flight_max, limits.in_flight_share_percent)
        self.callers_waiting = 0
        """How many wait for a slot of the node, call queues not counted."""

    @property
    def taken(self) -> int:
        """How many calls are under way."""
        return self._slots.taken

    @property
    def are_crowded(self) -> bool:
        """Whether a call waits for a slot, of the node or of a function."""
        return self._slots.waiting > 0 or self.function_limits.is_crowded

    def acquire_now(self, flow_name: str, callee: Callee, limit: KeyedSemaphore | None = None) -> CallSlot | None:
        """Take a slot of the node; None if that needs waiting.

        A slot of `limit` has been taken before; it is released with the node's, or now if there is none.
        """
        if self._slots.acquire_now(flow_name, callee):
            return CallSlot(self._slots, flow_name, callee, limit)
        if limit is not None:
            limit.release()
        return None

    async def acquire(
        self, flow_name: str, callee: Callee, limit: KeyedSemaphore | None = None, *, for_queue: bool = False
    ) -> CallSlot:
        """The same, but wait. A call queue passes `for_queue`: its keys are counted, and not it in `callers_waiting`.

        If the wait is cancelled, the slot of `limit` is released.
        """
        self.callers_waiting += not for_queue
        try:
            await self._slots.acquire(flow_name, callee)
        except asyncio.CancelledError:
            if limit is not None:
                limit.release()
            raise
        finally:
            self.callers_waiting -= not for_queue
        return CallSlot(self._slots, flow_name, callee, limit)
