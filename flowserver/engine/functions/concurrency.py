"""Places of single functions: how many calls of one this node makes at once, and how many more may wait for one.

Whoever a function is registered for says so with it, so that a flow cannot flatten a small worker. A function without a
bound has no gate, and costs nothing here.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from flowserver.base.limits import Limits
from flowserver.invokers.invocation import Endpoint


class GateFull(Exception):
    """All places of the function are taken, and as many calls wait for one as may."""


class Gate:
    """The places of one function on this node. First come, first served."""

    def __init__(self) -> None:
        self.places_max = 1
        self.taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def wanted(self) -> int:
        """How many wait for a place."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether nobody is here."""
        return not self.taken and not self._waiting

    def take_now(self) -> bool:
        """Take a place if that needs no waiting."""
        is_free = self.taken < self.places_max and not self._waiting
        self.taken += is_free
        return is_free

    async def take(self) -> None:
        """Wait for a place; whoever gets one gives it back."""
        if self.take_now():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it came at the same moment
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def give_back(self) -> None:
        """Let go of a place; whoever has waited longest gets it, unless there are fewer places now."""
        self.taken -= 1
        self.let_in()

    def let_in(self) -> None:
        """Give free places to those who wait; there may be more of them than before."""
        while self.taken < self.places_max and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self.taken += 1
                turn.set_result(None)


class Gates:
    """The gates of this node, by registration."""

    def __init__(self, limits: Limits, nodes: Callable[[], int]) -> None:
        """`nodes` says how many nodes share a function's places; each has its part of them, and one at least."""
        self._limits = limits
        self._nodes = nodes
        self._gates: dict[tuple[str, str], Gate] = {}

    def of(self, endpoint: Endpoint) -> Gate | None:
        """The gate to the function; None if it has no bound."""
        if endpoint.concurrency_max is None:
            return None
        gate = self._gates.get(endpoint.registered_as)
        if gate is None:
            self._forget_idle()
            gate = self._gates[endpoint.registered_as] = Gate()
        places_max = max(1, endpoint.concurrency_max // self._nodes())
        if gate.places_max != places_max:
            gate.places_max = places_max
            gate.let_in()
        return gate

    def room(self, endpoint: Endpoint) -> int:
        """How many calls that nobody waits for may stand in line on this node: those that may wait for a place of the
        function, and those that find one free.
        """
        gate = self.of(endpoint)
        if gate is None:
            return self._limits.function_waiting_max
        return self._waiting_max(endpoint) + max(gate.places_max - gate.taken, 0)

    def _waiting_max(self, endpoint: Endpoint) -> int:
        return self._limits.function_waiting_max if endpoint.waiting_max is None else endpoint.waiting_max

    def enter(self, endpoint: Endpoint) -> Gate | None:
        """The gate that a caller who waits for the answer is to `take`; raises GateFull if too many wait already."""
        gate = self.of(endpoint)
        if gate is not None and gate.taken >= gate.places_max and gate.wanted >= self._waiting_max(endpoint):
            raise GateFull(self.refusal(endpoint))
        return gate

    def refusal(self, endpoint: Endpoint) -> str:
        """What a caller is told who may not wait."""
        return f"all places of function {endpoint.registered_as[1]} are taken, and as many calls wait as may"

    @property
    def are_crowded(self) -> bool:
        """Whether anybody waits at any gate."""
        return any(gate.wanted for gate in self._gates.values())

    def _forget_idle(self) -> None:
        """A new one comes seldom; then those go that nobody uses."""
        for key in [key for key, gate in self._gates.items() if gate.is_idle]:
            del self._gates[key]
