"""Takes the turns of schedules step by step."""

from collections.abc import AsyncIterator

import pytest

from flowserver.engine.due_loop import AT_ONCE
from flowserver.machine.schedules.state import Schedule
from flowserver.operations.schedule_fields import ScheduleChange
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from tests.engine.nodes import Node
from tests.support.clock import ManualClock

NEVER_ENDS = "- {type: wait, name: w, duration: 86400}"
ENDS = "- {type: pass, name: p}"


class TurnTaker:
    """Takes turns of the schedules of a node, whose own loop is stopped."""

    def __init__(self, node: Node, clock: ManualClock) -> None:
        self.node = node
        self.clock = clock
        self.loop = node.engine.schedules

    async def create(self, steps: str, expression: str = "@every 1m", flow: str = "f", **fields: object) -> Schedule:
        await self.node.create_flow(flow, steps)
        change = ScheduleChange(expression=expression, **fields)  # type: ignore[arg-type]
        return await self.node.operations.schedules.create(flow, "s", change)

    async def turns(self, *, after_seconds: float = 0) -> None:
        """Advance the clock, and take every turn that is due then."""
        self.clock.advance(seconds=after_seconds)
        while await self.loop.handle_due() == AT_ONCE:
            pass

    async def schedule(self, flow: str = "f") -> Schedule:
        return await self.node.operations.schedules.describe(flow, "s")

    async def executions(self, flow: str = "f") -> list[str]:
        """The names of the flow's executions, in order."""
        wanted = ExecutionFilter()
        page = await self.node.operations.executions.list(flow, wanted, next_token=None, limit=100)
        return sorted(row.name for row in page.items)


@pytest.fixture
async def taker(node: Node, clock: ManualClock) -> AsyncIterator[TurnTaker]:
    await node.engine.schedules.stop()
    yield TurnTaker(node, clock)
