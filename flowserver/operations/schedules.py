"""Schedules: creating, changing, pausing, triggering and backfilling them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import partial
from uuid import uuid4

from msgspec.structs import replace
from sqlalchemy import Connection

from flowserver.base.errors import (
    InternalServerError,
    InvalidArgument,
    ResourceThrottled,
    ScheduleAlreadyExists,
    ScheduleNotExists,
)
from flowserver.base.names import NAME_RULE, is_name
from flowserver.engine.engine import Engine
from flowserver.machine.schedules.counting import count_instants
from flowserver.machine.schedules.execution_names import execution_name
from flowserver.machine.schedules.state import RECENT_MAX, Action, Backfill, Kind, Memory, Overlap, Schedule
from flowserver.machine.schedules.timing import next_instants
from flowserver.machine.state import Status
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.flows import require_flow
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.schedule_fields import ScheduleChange, changed, check_fields, checked_timing
from flowserver.operations.schedule_warnings import ScheduleWarning, unknown_flow, unknown_qualifier, unreadable_timing
from flowserver.store.executions.lookups import find_statuses
from flowserver.store.flows import find_flow
from flowserver.store.schedules.rows import (
    ScheduleDamaged,
    count_schedules,
    delete_schedule,
    find_schedule,
    insert_schedule,
    list_schedules,
    update_schedule,
)

BACKFILLS_MAX = 10
"""Ranges that wait in one schedule."""

TRIES = 3
"""How often the ticks of a backfill are counted anew because the schedule has changed meanwhile."""

CLOCKS_DIFFER_MS = 60_000
"""How far ahead the clock of a caller may be that asks for a range up to now."""


@dataclass(frozen=True, slots=True)
class ShownSchedule:
    """A schedule with its next instants (ms), and the statuses of its recent executions that still exist, by id.

    `warnings` are what is doubtful about it.
    """

    schedule: Schedule
    next_instants: list[int]
    statuses: Mapping[str, Status]
    warnings: Sequence[ScheduleWarning] = ()


class ScheduleOperations:
    """Operations on schedules."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("schedules.create", "flows/{flow_name}/schedules/{name}")
    async def create(self, flow_name: str, name: str, fields: ScheduleChange) -> Schedule:
        """Create a schedule; what `fields` leaves out has its default.

        Raises InvalidArgument, FlowNotExists, ScheduleAlreadyExists, ResourceThrottled.
        """
        if not is_name(name):
            raise InvalidArgument(f"ScheduleName {NAME_RULE}")
        check_fields(fields, self._engine.limits)
        now = self._engine.clock.now_ms()
        schedule_id = str(uuid4())

        def write(connection: Connection) -> Schedule:
            flow = require_flow(connection, flow_name, lock=True)  # which is not deleted before this commits
            found = _find(connection, flow_name, name)
            if found is not None and found.schedule_id == schedule_id:
                return found  # by a first try that was committed although its answer was lost
            if found is None:
                self._check_count(connection, flow_name)
            blank = _blank(schedule_id, flow.flow_id, flow_name, name, now)
            schedule = changed(blank, fields, now)
            if found is not None or not insert_schedule(connection, schedule):
                raise ScheduleAlreadyExists(f"flow {flow_name} has a schedule {name} already")
            return schedule

        return self._noted(await self._engine.committer.write(write, by_caller=True))

    @audited("schedules.update", "flows/{flow_name}/schedules/{name}")
    async def update(self, flow_name: str, name: str, change: ScheduleChange) -> Schedule:
        """Change a schedule; another expression or time zone, or enabling it, starts `@every` anew from now.

        Raises InvalidArgument, FlowNotExists, ScheduleNotExists.
        """
        check_fields(change, self._engine.limits)
        now = self._engine.clock.now_ms()
        return await self._change(flow_name, name, lambda schedule: changed(schedule, change, now))

    @audited("schedules.put", "flows/{flow_name}/schedules/{name}")
    async def put(
        self, flow_name: str, name: str, fields: ScheduleChange, *, strict: bool = False
    ) -> tuple[Schedule, bool]:
        """Give a schedule these fields, creating it if need be; returns it and whether it is new.

        What `fields` leaves out of an existing schedule stays as it is. With `strict`, warnings refuse it. Raises as
        `create`.
        """
        if strict:
            await self.check(flow_name, name, fields, strict=True)
        try:
            return await self.update(flow_name, name, fields), False
        except ScheduleNotExists:
            pass
        try:
            return await self.create(flow_name, name, fields), True
        except ScheduleAlreadyExists:  # a concurrent request created it first
            return await self.update(flow_name, name, fields), False

    async def check(self, flow_name: str, name: str, fields: ScheduleChange, *, strict: bool = False) -> ShownSchedule:
        """What `put` would make of the schedule; nothing is changed. That the flow is missing is a warning.

        Raises InvalidArgument, with `strict` also for an unknown qualifier, and ResourceThrottled.
        """
        if not is_name(name):
            raise InvalidArgument(f"ScheduleName {NAME_RULE}")
        check_fields(fields, self._engine.limits)
        now = self._engine.clock.now_ms()

        def read(connection: Connection) -> ShownSchedule:
            flow = find_flow(connection, flow_name)
            found = _find(connection, flow_name, name)
            if flow is not None and found is None:
                self._check_count(connection, flow_name)
            blank = _blank("", "" if flow is None else flow.flow_id, flow_name, name, now)
            seen = self._shown(connection, changed(found or blank, fields, now))
            if flow is None:
                return replace_fields(seen, warnings=(unknown_flow(flow_name), *seen.warnings))
            if strict and seen.warnings:
                raise InvalidArgument(seen.warnings[0].message)
            return seen

        return await self._engine.slow_reads.ask(read)

    @audited("schedules.pause", "flows/{flow_name}/schedules/{name}")
    async def pause(self, flow_name: str, name: str, note: str) -> Schedule:
        """Start nothing at further ticks. Raises InvalidArgument (note), FlowNotExists, ScheduleNotExists."""
        return await self.update(flow_name, name, ScheduleChange(is_enabled=False, note=note))

    @audited("schedules.resume", "flows/{flow_name}/schedules/{name}")
    async def resume(self, flow_name: str, name: str, note: str) -> Schedule:
        """Start at further ticks again, not at those that have passed. Raises as `pause`."""
        return await self.update(flow_name, name, ScheduleChange(is_enabled=True, note=note))

    @audited("schedules.trigger", "flows/{flow_name}/schedules/{name}")
    async def trigger(self, flow_name: str, name: str, overlap: Overlap | None) -> tuple[Schedule, str]:
        """Start an execution now, under the schedule's overlap policy or another.

        Returns the schedule and the execution's name, under which it exists once it has started. Raises FlowNotExists,
        ScheduleNotExists, ResourceThrottled (too many triggers wait).
        """
        action: Action | None = None

        def add(schedule: Schedule) -> Schedule:
            nonlocal action
            memory = schedule.memory
            if action is None:
                action = Action(self._free_instant(memory), Kind.TRIGGER, overlap or schedule.overlap)
            if action in memory.triggers:
                return schedule  # a first try was committed although its answer was lost
            if len(memory.triggers) + len(memory.buffered) >= self._engine.limits.schedule_buffer_max:
                raise ResourceThrottled(f"schedule {name} has too many starts that wait")
            return _with_work(schedule, replace(memory, triggers=(*memory.triggers, action)), action.at)

        schedule = await self._change(flow_name, name, add)
        assert action is not None
        return schedule, execution_name(name, action.at, with_ms=True)

    @audited("schedules.backfill", "flows/{flow_name}/schedules/{name}")
    async def backfill(self, flow_name: str, name: str, begin_ms: int, end_ms: int, overlap: Overlap | None) -> int:
        """Run the ticks of a range, both ends included, as if they were due now; returns how many there are.

        A tick that has an execution already is not run again. The overlap policy is BufferAll if it is None. Raises
        InvalidArgument (an empty or too long range), FlowNotExists, ScheduleNotExists, ResourceThrottled.
        """
        if begin_ms > end_ms:
            raise InvalidArgument("the backfill must end after it begins")
        if end_ms > self._engine.clock.now_ms() + CLOCKS_DIFFER_MS:
            raise InvalidArgument("the backfill must end in the past; later ticks start by themselves")
        end_ms = min(end_ms, self._engine.clock.now_ms())
        if begin_ms < 0:
            raise InvalidArgument("the backfill must begin in 1970 or later")
        now = self._engine.clock.now_ms()
        for _ in range(TRIES):
            seen = await self.describe(flow_name, name)
            first, count = await self._engine.slow_reads.ask(partial(self._count, seen, begin_ms, end_ms))
            backfill = Backfill(first, end_ms, overlap or Overlap.BUFFER_ALL)
            after = await self._change(flow_name, name, partial(_with_backfill, backfill, seen, now))
            if _has_timing_of(after, seen):
                return count
        raise ResourceThrottled(f"schedule {name} keeps changing; try again shortly")

    def _count(self, schedule: Schedule, begin_ms: int, end_ms: int, _: Connection) -> tuple[int, int]:
        """The first tick of a range, and how many it has. Counting takes up to half a second: not in the writer."""
        most = self._engine.limits.schedule_backfill_ticks_max
        timing = checked_timing(schedule)
        count = count_instants(timing, begin_ms, end_ms, most + 1)
        first = timing.next_after(begin_ms - 1)
        if first is None or not 1 <= count <= most:
            raise InvalidArgument(f"a backfill has 1 to {most} ticks; this range has {'more' if count else 'none'}")
        return first, count

    @audited("schedules.delete", "flows/{flow_name}/schedules/{name}")
    async def delete(self, flow_name: str, name: str) -> None:
        """Delete a schedule; its executions go on. Raises FlowNotExists, ScheduleNotExists."""

        def write(connection: Connection, was_there: bool | None) -> bool:
            if not delete_schedule(connection, flow_name, name) and not was_there:
                raise _missing(connection, flow_name, name)
            return True

        await self._engine.committer.write_once(write, by_caller=True)

    async def describe(self, flow_name: str, name: str) -> Schedule:
        """The schedule; raises FlowNotExists, ScheduleNotExists, InternalServerError (the stored row is damaged)."""
        return await self._engine.reader.ask(partial(_require, flow_name=flow_name, name=name), by_caller=True)

    async def show(self, flow_name: str, name: str) -> ShownSchedule:
        """The schedule with its next ten instants and its last ten executions; raises as `describe`."""

        def read(connection: Connection) -> ShownSchedule:
            return self._shown(connection, _require(connection, flow_name=flow_name, name=name))

        return await self._engine.slow_reads.ask(read)

    async def list(
        self, flow_name: str | None, *, flows: str = "", next_token: str | None, limit: int | None
    ) -> Page[Schedule]:
        """Schedules of a flow by name, or of all flows whose names begin with `flows`, by flow and name.

        The token is the name that the next page begins with, `flow/name` for all flows. Raises FlowNotExists.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        begin_flow, _, begin = (next_token or "").rpartition("/")

        def read(connection: Connection) -> Page[Schedule]:
            if flow_name is not None:
                require_flow(connection, flow_name)
            found, following = list_schedules(
                connection,
                flow_name=flow_name,
                flows=flows,
                begin=(begin_flow, begin),
                limit=size,
                bytes_max=limits.page_bytes_max,
            )
            token = None if following is None else "/".join(following) if flow_name is None else following[1]
            return Page(found, token)

        return await self._engine.slow_reads.ask(read)

    async def _change(self, flow_name: str, name: str, change: Callable[[Schedule], Schedule]) -> Schedule:
        def write(connection: Connection) -> Schedule:
            before = _require(connection, flow_name=flow_name, name=name, lock=True)
            after = change(before)
            if after != before:
                update_schedule(connection, after)
            return after

        return self._noted(await self._engine.committer.write(write, by_caller=True))

    def _check_count(self, connection: Connection, flow_name: str) -> None:
        most = self._engine.limits.schedules_per_flow_max
        if count_schedules(connection, flow_name) >= most:
            raise ResourceThrottled(f"flow {flow_name} has {most} schedules already; delete some first")

    def _noted(self, schedule: Schedule) -> Schedule:
        if schedule.wake_at is not None:
            self._engine.schedules.note_due(schedule.wake_at)
        return schedule

    def _free_instant(self, memory: Memory) -> int:
        """Now, or the next millisecond that no start of the schedule is for."""
        at = self._engine.clock.now_ms()
        waiting = {action.at for action in (*memory.triggers, *memory.buffered)}
        taken = waiting | {run.at for run in memory.recent}
        while at in taken:
            at += 1
        return at

    def _shown(self, connection: Connection, schedule: Schedule) -> ShownSchedule:
        statuses = find_statuses(connection, [run.execution_id for run in schedule.memory.recent])
        doubtful = unknown_qualifier(connection, schedule)
        warnings = () if doubtful is None else (doubtful,)
        try:
            timing = checked_timing(schedule)
        except InvalidArgument as error:  # a newer release of the time zones, or of this server, cannot read it
            warnings = (unreadable_timing(error.message), *warnings)
            return ShownSchedule(replace(schedule, next_at=None), [], statuses, warnings)
        if schedule.next_at is None:
            return ShownSchedule(schedule, [], statuses, warnings)
        instants = next_instants(timing, schedule.next_at - 1, RECENT_MAX)
        left = schedule.actions_left
        return ShownSchedule(schedule, instants if left is None else instants[:left], statuses, warnings)


def _blank(schedule_id: str, flow_id: str, flow_name: str, name: str, now_ms: int) -> Schedule:
    return Schedule(
        schedule_id=schedule_id,
        flow_id=flow_id,
        flow_name=flow_name,
        name=name,
        expression="",
        is_enabled=True,
        anchor_at=now_ms,
        next_at=None,
        wake_at=None,
        created_at=now_ms,
        modified_at=now_ms,
    )


def _with_backfill(backfill: Backfill, seen: Schedule, now_ms: int, schedule: Schedule) -> Schedule:
    """The schedule with a further backfill; unchanged if it has it, or if its ticks are not those that were seen."""
    memory = schedule.memory
    if backfill in memory.backfills or not _has_timing_of(schedule, seen):
        return schedule
    if len(memory.backfills) >= BACKFILLS_MAX:
        raise ResourceThrottled(f"schedule {schedule.name} has {BACKFILLS_MAX} backfills that wait")
    return _with_work(schedule, replace(memory, backfills=(*memory.backfills, backfill)), now_ms)


def _has_timing_of(schedule: Schedule, other: Schedule) -> bool:
    one, two = ((each.expression, each.time_zone, each.anchor_at) for each in (schedule, other))
    return one == two


def _with_work(schedule: Schedule, memory: Memory, now_ms: int) -> Schedule:
    return replace(schedule, memory=memory, wake_at=now_ms)


def _find(connection: Connection, flow_name: str, name: str, *, lock: bool = False) -> Schedule | None:
    """As `find_schedule`, but a damaged row is an error of the server that callers understand."""
    try:
        return find_schedule(connection, flow_name, name, lock=lock)
    except ScheduleDamaged as damaged:
        raise InternalServerError(f"{damaged}; delete the schedule and create it again") from None


def _require(connection: Connection, *, flow_name: str, name: str, lock: bool = False) -> Schedule:
    schedule = _find(connection, flow_name, name, lock=lock)
    if schedule is None:
        raise _missing(connection, flow_name, name)
    return schedule


def _missing(connection: Connection, flow_name: str, name: str) -> ScheduleNotExists:
    require_flow(connection, flow_name)
    return ScheduleNotExists(f"flow {flow_name} has no schedule {name}")
