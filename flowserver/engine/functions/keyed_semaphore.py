"""One pool of slots, shared fairly: each is held under two keys, callee and flow, and no key can take all of them.

The share rule is the dynamic threshold by which network switches divide their buffers. A callee, and likewise a flow,
may take one more slot only while it would then hold at most so many times as many as are left free: three times, at a
share of 75 percent. A single key gets 75 percent of the slots; of several, each gets less, and the more there are,
the fewer are kept free. So a function that hangs, and keeps its slots until its timeout, leaves slots for others.

A sixteenth of the slots is a reserve, which does not count as free in this rule: it is for callees and flows that hold
no slot at all, which get the first that is free. So functions that hang hold all slots only when there are more of
them, in as many flows, than the reserve has slots.

A waiter is held back by its callee, by its flow, or because no slot is free. When a slot is released, callees take
turns, and among the waiters of one callee the flows do. With a share of 100 percent there is no reserve and only the
number of slots counts; under one pair of keys that is a plain semaphore, first come, first served.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from typing import Any

Callee = tuple[str, ...]
"""What is called: a function as it is registered, or another target by its name."""

Waiters = OrderedDict[str, deque[asyncio.Future[None]]]
"""Those of one callee, by flow."""


class KeyedSemaphore:
    """Hands out slots; make and use it inside one event loop."""

    def __init__(self, slots_max: int, share_percent: int = 100) -> None:
        """`share_percent` of the slots is what one callee or flow gets while it is alone."""
        self._slots_max = slots_max
        self._share = share_percent
        self._rest = 100 - share_percent
        self._reserve = _reserve_of(slots_max, share_percent)
        self._waiters: OrderedDict[Callee, Waiters] = OrderedDict()
        self._of_flows: Counter[str] = Counter()
        self._of_callees: Counter[Callee] = Counter()
        self.taken = 0
        self.waiting = 0
        """How many wait for a slot."""

    @property
    def free(self) -> int:
        """How many slots are free; less than 0 if more are held than there are now."""
        return self._slots_max - self.taken

    def resize(self, slots_max: int) -> None:
        """Have so many slots from now on. Those that are held stay held, also if there are fewer now."""
        if slots_max != self._slots_max:
            self._slots_max = slots_max
            self._reserve = _reserve_of(slots_max, self._share)
            self._serve()

    def acquire_now(self, flow_name: str = "", callee: Callee = ()) -> bool:
        """Take a slot if that needs no waiting."""
        may_take = self._may_take(self._of_callees[callee]) and self._may_take(self._of_flows[flow_name])
        if may_take:
            self._hold(flow_name, callee)
        return may_take

    async def acquire(self, flow_name: str = "", callee: Callee = ()) -> None:
        """Wait for a slot; release it under the same keys. Within a flow and callee first come, first served."""
        if self.acquire_now(flow_name, callee):
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(callee, OrderedDict()).setdefault(flow_name, deque()).append(waiter)
        self.waiting += 1
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.release(flow_name, callee)  # it came at the same moment
            else:
                self._forget(flow_name, callee, waiter)
            raise

    def release(self, flow_name: str = "", callee: Callee = ()) -> None:
        """Give a slot back; the next waiter that may have it gets it."""
        self.taken -= 1
        _subtract(self._of_flows, flow_name)
        _subtract(self._of_callees, callee)
        self._serve()

    def _may_take(self, held: int) -> bool:
        """Whether a flow or a callee that holds so many may take one more."""
        free = self._slots_max - self.taken
        if held == 0:
            return free > 0
        left = free - self._reserve - 1
        return left >= 0 and self._rest * (held + 1) <= self._share * left

    def _hold(self, flow_name: str, callee: Callee) -> None:
        self.taken += 1
        self._of_flows[flow_name] += 1
        self._of_callees[callee] += 1

    def _serve(self) -> None:
        while self._waiters and self.free > 0 and self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Give a slot to the first that may have it, and put its flow and its callee last; False if none may.

        Only what holds slots is passed over, so the search is short, however many wait.
        """
        for callee, flows in self._waiters.items():
            if not self._may_take(self._of_callees[callee]):
                continue
            for flow_name, waiters in flows.items():
                if not self._may_take(self._of_flows[flow_name]):
                    continue
                waiter = waiters.popleft()
                self.waiting -= 1
                flows.move_to_end(flow_name)
                self._waiters.move_to_end(callee)
                if not waiters:
                    self._drop(flow_name, callee)
                if not waiter.done():
                    self._hold(flow_name, callee)
                    waiter.set_result(None)
                return True
        return False

    def _forget(self, flow_name: str, callee: Callee, waiter: asyncio.Future[None]) -> None:
        flows = self._waiters.get(callee)
        waiters = None if flows is None else flows.get(flow_name)
        if waiters and waiter in waiters:  # a slot that was released meanwhile may have passed it by
            waiters.remove(waiter)
            self.waiting -= 1
            if not waiters:
                self._drop(flow_name, callee)

    def _drop(self, flow_name: str, callee: Callee) -> None:
        flows = self._waiters[callee]
        del flows[flow_name]
        if not flows:
            del self._waiters[callee]


def _reserve_of(slots_max: int, share_percent: int) -> int:
    return slots_max // 16 if share_percent < 100 else 0


def _subtract(counter: Counter[Any], key: Any) -> None:
    """A key that is at zero is not kept."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
