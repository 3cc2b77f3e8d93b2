"""Places for calls under way: so many at once, and among those who wait the flows take turns."""

import asyncio
from collections import OrderedDict, deque


class Places:
    """So that a flow with thousands of calls to make does not keep another one's few waiting behind all of them."""

    def __init__(self, places_max: int) -> None:
        self._places_max = places_max
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.taken = 0
        self.wanted = 0
        """How many wait for one."""

    @property
    def are_taken(self) -> bool:
        """Whether somebody who comes now has to wait."""
        return self.taken >= self._places_max

    async def take(self, flow_name: str) -> None:
        """Wait for a place; whoever gets one gives it back. Within a flow first come, first served."""
        if not self.are_taken:
            self.taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(flow_name, deque()).append(turn)
        self.wanted += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it came at the same moment
            else:
                self._forget(flow_name, turn)
            raise
        finally:
            self.wanted -= 1

    def _forget(self, flow_name: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(flow_name, deque())
        if turn in turns:  # a place that was given back meanwhile may have passed it by
            turns.remove(turn)
            if not turns:
                del self._waiting[flow_name]

    def give_back(self) -> None:
        """Let go of a place: it goes to the flow whose turn it is."""
        while self._waiting:
            flow_name, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[flow_name] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self.taken -= 1
