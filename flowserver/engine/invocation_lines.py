"""The lines in which asynchronous invocations wait for their turn: one for each function, of keys only.

A line stands at its function's gate and for a place of the node as one who waits, so that a hundred thousand in it keep
neither a step's call nor another function's line waiting for more than one turn.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice

from flowserver.engine.gates import Gate, Gates
from flowserver.engine.persisting import persist
from flowserver.engine.places import Callee, Places
from flowserver.engine.registry import FunctionKey, FunctionRegistry
from flowserver.invokers.invocation import Endpoint

log = logging.getLogger(__name__)


class Place:
    """A place of the node and, if the function has a bound, one of its own; to be given back once."""

    def __init__(self, places: Places, flow_name: str, callee: Callee, gate: Gate | None) -> None:
        """The place is taken already, under these names."""
        self._places = places
        self._names = flow_name, callee
        self._gate = gate
        self._is_held = True

    def give_back(self) -> None:
        """Let go of it; a second time has no effect."""
        if self._is_held:
            self._is_held = False
            self._places.give_back(*self._names)
            if self._gate is not None:
                self._gate.give_back()


Begin = Callable[[str, Place], None]
"""Has a key's turn begin."""


class Lines:
    """The lines of this node."""

    def __init__(self, registry: FunctionRegistry, gates: Gates, places: Places, begin: Begin) -> None:
        self._registry = registry
        self._gates = gates
        self._places = places
        self._begin = begin
        self._lines: dict[FunctionKey, OrderedDict[str, None]] = {}
        self._heads: dict[FunctionKey, asyncio.Task[None]] = {}
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many wait, all together."""
        return sum(map(len, self._lines.values()))

    def length(self, function: FunctionKey) -> int:
        """How many wait for the function under this qualifier."""
        return len(self._lines.get(function, ()))

    def join(self, function: FunctionKey, key: str) -> None:
        """Wait for a turn."""
        if self._is_closed:
            return
        self._lines.setdefault(function, OrderedDict())[key] = None
        if function not in self._heads:
            head = asyncio.create_task(self._advance(function), name=f"line of {'/'.join(function)}")
            self._heads[function] = head
            head.add_done_callback(lambda _: self._left(function, head))

    def drop(self, function: FunctionKey, key: str) -> None:
        """It waits no more, if it did."""
        line = self._lines.get(function)
        if line is not None:
            line.pop(key, None)

    def close(self) -> None:
        """Nobody's turn comes any more, and nobody joins."""
        self._is_closed = True
        self.clear()

    def clear(self) -> None:
        """Send everybody away."""
        for head in self._heads.values():
            head.cancel()
        self._heads.clear()
        self._lines.clear()

    def send_away(self, keeps: Callable[[str], bool], limit: int) -> list[str]:
        """Have up to `limit` that cannot begin at once leave their lines, but not those that `keeps` is true for."""
        if not (self._places.wanted or self._gates.are_crowded):
            return []
        waiting = ((function, key) for function, line in self._lines.items() for key in line if not keeps(key))
        gone = list(islice(waiting, limit))
        for function, key in gone:
            self.drop(function, key)
        return [key for _, key in gone]

    async def _advance(self, function: FunctionKey) -> None:
        while self._lines.get(function):
            place = await self._take(function)
            line = self._lines.get(function)
            if not line:  # they were sent away meanwhile
                place.give_back()
                return
            self._begin(line.popitem(last=False)[0], place)

    async def _take(self, function: FunctionKey) -> Place:
        """A place for the next one; its function's own first, since that one keeps nobody else waiting."""
        endpoint = await self._endpoint(function)
        gate = None if endpoint is None else self._gates.of(endpoint)
        flow_name = "/".join(function)
        callee = (flow_name,) if endpoint is None else endpoint.registered_as
        if gate is not None:
            await gate.take()
        try:
            await self._places.take(flow_name, callee)
        except asyncio.CancelledError:
            if gate is not None:
                gate.give_back()
            raise
        return Place(self._places, flow_name, callee, gate)

    async def _endpoint(self, function: FunctionKey) -> Endpoint | None:
        found = self._registry.remembered(*function)
        try:
            found = found or await persist(lambda: self._registry.find(*function), gives_up=True)
        except Exception:  # unreadable names or registration: those who wait find that out when their turn comes
            log.exception("a function of invocations cannot be looked up")
            return None
        return found if isinstance(found, Endpoint) else None

    def _left(self, function: FunctionKey, head: asyncio.Task[None]) -> None:
        if self._heads.get(function) is not head:
            return
        del self._heads[function]
        line = self._lines.pop(function, None)
        for key in line or ():  # they came at the last moment
            self.join(function, key)
