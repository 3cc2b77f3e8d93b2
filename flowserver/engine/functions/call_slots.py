"""Places for calls under way: a bounded number, of which no function and no flow ever has all.

A function that hangs keeps its places until its time is up. So a function, and likewise a flow, may take a further
place only while it would then have at most so many times as many as are left free: three times, at a share of 75
percent. One that is alone gets 75 percent of the places; of several, each gets less, and the more there are, the less
is kept free. This is the dynamic threshold by which network switches divide their buffers.

A sixteenth of the places is a reserve, which does not count as free there: it is for functions and flows that have no
place at all, which get the first that is free. So functions that hang hold all places only when there are more of them,
in as many flows, than the reserve has places.

A call that waits is held back by its function, by its flow, or because no place is free. When a place is given back,
functions take turns, and among the calls of one function the flows do.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from typing import Any

Callee = tuple[str, ...]
"""What is called: a function as it is registered, or another target by its name."""

Turns = OrderedDict[str, deque[asyncio.Future[None]]]
"""Who waits, by flow."""


class Places:
    """Hands out places; make and use it inside one event loop."""

    def __init__(self, places_max: int, share_percent: int = 75) -> None:
        """`share_percent` of the places is what one function or flow gets while it is alone; 100 is no bound."""
        self._places_max = places_max
        self._share = share_percent
        self._rest = 100 - share_percent
        self._reserve = places_max // 16 if share_percent < 100 else 0
        self._waiting: OrderedDict[Callee, Turns] = OrderedDict()
        self._of_flows: Counter[str] = Counter()
        self._of_callees: Counter[Callee] = Counter()
        self.taken = 0
        self.wanted = 0
        """How many wait for one, those in lines not counted."""

    @property
    def is_crowded(self) -> bool:
        """Whether anybody waits for a place, a line of calls included."""
        return bool(self._waiting)

    def take_now(self, flow_name: str, callee: Callee) -> bool:
        """Take a place if that needs no waiting."""
        may_take = self._may_take(self._of_callees[callee]) and self._may_take(self._of_flows[flow_name])
        if may_take:
            self._hold(flow_name, callee)
        return may_take

    async def take(self, flow_name: str, callee: Callee, *, for_line: bool = False) -> None:
        """Wait for a place; give it back under the same names. Within a flow and function first come, first served.

        A line that waits `for_line` is not counted in `wanted`: it counts those in it.
        """
        if self.take_now(flow_name, callee):
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(callee, OrderedDict()).setdefault(flow_name, deque()).append(turn)
        self.wanted += not for_line
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(flow_name, callee)  # it came at the same moment
            else:
                self._forget(flow_name, callee, turn)
            raise
        finally:
            self.wanted -= not for_line

    def give_back(self, flow_name: str, callee: Callee) -> None:
        """Let go of a place: whose turn it is gets it, if that one may."""
        self.taken -= 1
        _subtract(self._of_flows, flow_name)
        _subtract(self._of_callees, callee)
        while self._waiting and self.taken < self._places_max and self._let_in():
            pass

    def _may_take(self, held: int) -> bool:
        """Whether a flow or a function that holds so many may take one more."""
        free = self._places_max - self.taken
        if held == 0:
            return free > 0
        left = free - self._reserve - 1
        return left >= 0 and self._rest * (held + 1) <= self._share * left

    def _hold(self, flow_name: str, callee: Callee) -> None:
        self.taken += 1
        self._of_flows[flow_name] += 1
        self._of_callees[callee] += 1

    def _let_in(self) -> bool:
        """Give a place to the first that may have it, and put its flow and its function last; False if none may.

        Only what holds places is passed over, so the search is short, however many wait.
        """
        for callee, flows in self._waiting.items():
            if not self._may_take(self._of_callees[callee]):
                continue
            for flow_name, turns in flows.items():
                if not self._may_take(self._of_flows[flow_name]):
                    continue
                turn = turns.popleft()
                flows.move_to_end(flow_name)
                self._waiting.move_to_end(callee)
                if not turns:
                    self._drop(flow_name, callee)
                if not turn.done():
                    self._hold(flow_name, callee)
                    turn.set_result(None)
                return True
        return False

    def _forget(self, flow_name: str, callee: Callee, turn: asyncio.Future[None]) -> None:
        flows = self._waiting.get(callee)
        turns = None if flows is None else flows.get(flow_name)
        if turns and turn in turns:  # a place that was given back meanwhile may have passed it by
            turns.remove(turn)
            if not turns:
                self._drop(flow_name, callee)

    def _drop(self, flow_name: str, callee: Callee) -> None:
        flows = self._waiting[callee]
        del flows[flow_name]
        if not flows:
            del self._waiting[callee]


def _subtract(counter: Counter[Any], key: Any) -> None:
    """A key that is at zero is not kept."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
