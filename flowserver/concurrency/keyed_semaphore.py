"""One pool of slots, shared fairly: each is held under two keys, its owner and its resource, and no key can take all.

The share rule is the dynamic threshold by which network switches divide their buffers. A resource, and likewise an
owner, may take one more slot only while it would then hold at most so many times as many as are left free: three times,
at a share of 75 percent. A single key gets 75 percent of the slots; of several, each gets less, and the more there are,
the fewer are kept free. So a resource that hangs, and keeps its slots until its timeout, leaves slots for others.

A sixteenth of the slots is a reserve, which does not count as free in this rule: it is for resources and owners that
hold no slot at all, which get the first that is free. So resources that hang hold all slots only when there are more of
them, of as many owners, than the reserve has slots.

A waiter is held back by its resource, by its owner, or because no slot is free. When a slot is released, resources take
turns, and among the waiters of one resource the owners do. With a share of 100 percent there is no reserve and only the
number of slots counts; under one pair of keys that is a plain semaphore, first come, first served.
"""

import asyncio
from collections import OrderedDict, deque
from typing import Any

Resource = tuple[str, ...]
"""What a slot is for, by its name."""

Waiters = OrderedDict[str, deque[asyncio.Future[None]]]
"""Those of one resource, by owner."""


class KeyedSemaphore:
    """Hands out slots; make and use it inside one event loop."""

    def __init__(self, slots_max: int, share_percent: int = 100) -> None:
        """`share_percent` of the slots is what one resource or owner gets while it is alone."""
        self._slots_max = slots_max
        self._share = share_percent
        self._rest = 100 - share_percent
        self._reserve = _reserve_of(slots_max, share_percent)
        self._waiters: OrderedDict[Resource, Waiters] = OrderedDict()
        self._of_owners: dict[str, int] = {}
        self._of_resources: dict[Resource, int] = {}
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

    def acquire_now(self, owner: str = "", resource: Resource = ()) -> bool:
        """Take a slot if that needs no waiting."""
        may_take = self._may_take(self._of_resources.get(resource, 0)) and self._may_take(self._of_owners.get(owner, 0))
        if may_take:
            self._hold(owner, resource)
        return may_take

    async def acquire(self, owner: str = "", resource: Resource = ()) -> None:
        """Wait for a slot; release it under the same keys. Within an owner and resource first come, first served."""
        if self.acquire_now(owner, resource):
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(resource, OrderedDict()).setdefault(owner, deque()).append(waiter)
        self.waiting += 1
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.release(owner, resource)  # it came at the same moment
            else:
                self._forget(owner, resource, waiter)
            raise

    def release(self, owner: str = "", resource: Resource = ()) -> None:
        """Give a slot back; the next waiter that may have it gets it."""
        self.taken -= 1
        _subtract(self._of_owners, owner)
        _subtract(self._of_resources, resource)
        if self._waiters:
            self._serve()

    def _may_take(self, held: int) -> bool:
        """Whether an owner or a resource that holds so many may take one more."""
        free = self._slots_max - self.taken
        if held == 0:
            return free > 0
        left = free - self._reserve - 1
        return left >= 0 and self._rest * (held + 1) <= self._share * left

    def _hold(self, owner: str, resource: Resource) -> None:
        self.taken += 1
        self._of_owners[owner] = self._of_owners.get(owner, 0) + 1
        self._of_resources[resource] = self._of_resources.get(resource, 0) + 1

    def _serve(self) -> None:
        while self._waiters and self.free > 0 and self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Give a slot to the first that may have it, and put its owner and its resource last; False if none may.

        Only what holds slots is passed over, so the search is short, however many wait.
        """
        for resource, owners in self._waiters.items():
            if not self._may_take(self._of_resources.get(resource, 0)):
                continue
            for owner, waiters in owners.items():
                if not self._may_take(self._of_owners.get(owner, 0)):
                    continue
                waiter = waiters.popleft()
                self.waiting -= 1
                owners.move_to_end(owner)
                self._waiters.move_to_end(resource)
                if not waiters:
                    self._drop(owner, resource)
                if not waiter.done():
                    self._hold(owner, resource)
                    waiter.set_result(None)
                return True
        return False

    def _forget(self, owner: str, resource: Resource, waiter: asyncio.Future[None]) -> None:
        owners = self._waiters.get(resource)
        waiters = None if owners is None else owners.get(owner)
        if waiters and waiter in waiters:  # a slot that was released meanwhile may have passed it by
            waiters.remove(waiter)
            self.waiting -= 1
            if not waiters:
                self._drop(owner, resource)

    def _drop(self, owner: str, resource: Resource) -> None:
        owners = self._waiters[resource]
        del owners[owner]
        if not owners:
            del self._waiters[resource]


def _reserve_of(slots_max: int, share_percent: int) -> int:
    return slots_max // 16 if share_percent < 100 else 0


def _subtract(held: dict[Any, int], key: Any) -> None:
    """A key that is at zero is not kept."""
    left = held[key] - 1
    if left:
        held[key] = left
    else:
        del held[key]
