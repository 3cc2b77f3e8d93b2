"""Limits of single functions: how many calls of one this node makes at once, and how many more may wait.

A limit is registered with its function, so that a flow cannot overload a small worker. A function without one has no
semaphore, and costs nothing here.
"""

from collections.abc import Callable

from flowserver.base.errors import ResourceExhausted
from flowserver.base.limits import Limits
from flowserver.concurrency.keyed_semaphore import KeyedSemaphore
from flowserver.invokers.calls import Endpoint


class FunctionLimits:
    """A semaphore for each function that has a limit, by registration. First come, first served."""

    def __init__(self, limits: Limits, nodes: Callable[[], int]) -> None:
        """`nodes` says how many nodes share a function's slots; each has its part of them, and one at least."""
        self._limits = limits
        self._nodes = nodes
        self._semaphores: dict[tuple[str, str], KeyedSemaphore] = {}

    def of(self, endpoint: Endpoint) -> KeyedSemaphore | None:
        """The function's slots; None if it has no limit."""
        if endpoint.concurrency_max is None:
            return None
        slots_max = max(1, endpoint.concurrency_max // self._nodes())
        semaphore = self._semaphores.get(endpoint.registered_as)
        if semaphore is None:
            self._forget_idle()
            semaphore = self._semaphores[endpoint.registered_as] = KeyedSemaphore(slots_max)
        semaphore.resize(slots_max)
        return semaphore

    def room(self, endpoint: Endpoint) -> int:
        """How many calls that no caller waits for may wait on this node: those that may wait for a slot of the
        function, and those that find one free.
        """
        semaphore = self.of(endpoint)
        if semaphore is None:
            return self._limits.function_waiting_max
        return self._waiting_max(endpoint) + max(semaphore.free, 0)

    def _waiting_max(self, endpoint: Endpoint) -> int:
        return self._limits.function_waiting_max if endpoint.waiting_max is None else endpoint.waiting_max

    def admit(self, endpoint: Endpoint) -> KeyedSemaphore | None:
        """As `of`, for a caller; raises ResourceExhausted if no slot is free and as many calls wait as may."""
        semaphore = self.of(endpoint)
        if semaphore is not None and semaphore.free <= 0 and semaphore.waiting >= self._waiting_max(endpoint):
            raise ResourceExhausted(self.refusal(endpoint))
        return semaphore

    def refusal(self, endpoint: Endpoint) -> str:
        """The message of an error for a call that may not wait."""
        return f"all slots of function {endpoint.registered_as[1]} are taken, and no more calls may wait"

    @property
    def is_crowded(self) -> bool:
        """Whether a call waits for a slot of any function."""
        return any(semaphore.waiting for semaphore in self._semaphores.values())

    def _forget_idle(self) -> None:
        """A new one comes seldom; then those go that are not used."""
        for key in [key for key, each in self._semaphores.items() if not each.taken and not each.waiting]:
            del self._semaphores[key]
