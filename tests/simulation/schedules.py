"""Schedules of a world, and the executions that their ticks must start: each exactly once, under its name."""

from random import Random

from flowserver.base.clock import format_instant
from flowserver.base.derived_ids import scheduled_execution_id
from flowserver.machine.schedules.execution_names import execution_name
from flowserver.machine.schedules.state import Overlap, Schedule
from flowserver.store.schedules.rows import find_schedule, insert_schedule
from tests.simulation.case import CASES_PER_WORLD, DEFINITIONS_PER_WORLD, NOW_MS, Plan, make_tick_case
from tests.simulation.shared_database import SharedDatabase
from tests.simulation.witness import Witness

SCHEDULES = 6
TICKS = 3
YEAR_SECONDS = 31_536_000


class Schedules:
    """Schedules with a few ticks each, whose starts are never too late."""

    def __init__(self, plan: Plan, database: SharedDatabase, witness: Witness, random: Random) -> None:
        self._database = database
        self._witness = witness
        self._expected: set[str] = set()
        self._keys: list[tuple[str, str]] = []
        for number in range(SCHEDULES):
            self._add(plan, number, random.randint(1, 7), Overlap.ALLOW_ALL if number else Overlap.BUFFER_ALL)

    @property
    def has_pending(self) -> bool:
        """Whether some of their executions have not begun."""
        return not self._witness.runs.keys() >= self._expected

    def check(self) -> None:
        """Every tick has counted once. The witness checks that each tick has one execution, and that there are no
        others.
        """
        for flow_name, name in self._keys:
            with self._database.read() as connection:
                schedule = find_schedule(connection, flow_name, name)
            assert schedule is not None
            memory = schedule.memory
            assert (memory.started, schedule.actions_left) == (TICKS, 0), f"{name} started {memory.started}"
            assert (memory.missed, memory.skipped, memory.refusals) == (0, 0, 0), f"{name}: {memory}"
            assert not (memory.buffered or memory.triggers or memory.backfills), f"{name}: {memory}"

    def _add(self, plan: Plan, number: int, minutes: int, overlap: Overlap) -> None:
        flow_name, name = f"sim{number % DEFINITIONS_PER_WORLD}", f"tick{number}"
        schedule = Schedule(
            schedule_id=name, flow_id=flow_name, flow_name=flow_name, name=name, expression=f"@every {minutes}m",
            overlap=overlap, catch_up_seconds=YEAR_SECONDS, actions_left=TICKS, anchor_at=NOW_MS,
            next_at=NOW_MS + minutes * 60_000, wake_at=NOW_MS + minutes * 60_000, created_at=NOW_MS,
            modified_at=NOW_MS,
        )  # fmt: skip
        with self._database.read() as connection:
            assert insert_schedule(connection, schedule)
        self._keys.append((flow_name, name))
        for tick in range(1, TICKS + 1):
            at = NOW_MS + tick * minutes * 60_000
            given = {"payload": {}, "triggerTime": format_instant(at), "triggerName": name}
            case = make_tick_case(
                plan, plan.number * CASES_PER_WORLD + number, flow_name, execution_name(name, at), given
            )
            execution_id = scheduled_execution_id(name, at, is_trigger=False)
            self._witness.cases[execution_id] = case
            self._expected.add(execution_id)
