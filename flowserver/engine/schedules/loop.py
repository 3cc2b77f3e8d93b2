"""Takes the turns of schedules that are due.

Every node sees every schedule that is due. It decides on its own share at once, and on what other nodes have left if
its share has nothing due. Two nodes may decide on the same tick: the transaction of the start changes the schedule's
row, so that one of the two commits and the other finds its turn taken. A turn without a start changes the row alone.
Executions are stopped by turns that are committed only. A stop that a crash loses follows from the row again.

A start that is refused changes nothing but its own schedule, which tries again later (`refused_starts`).
The ends of executions that a schedule waits for wake it: by memory on this node, by notices on others, and after
`LOOK_AGAIN_MS` by the row, should both be lost.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice

from cachetools import LRUCache
from msgspec.structs import replace
from sqlalchemy import Connection

from flowserver.base.clock import format_instant
from flowserver.base.errors import ExecutionAlreadyExists, FlowServerError
from flowserver.base.json_values import dump_json, load_json_object
from flowserver.base.limited_log import LimitedLog
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.committer import all_of
from flowserver.engine.context import EngineContext
from flowserver.engine.due_loop import AT_ONCE, LEFT_MS, DueLoop
from flowserver.engine.executions.starting import Starter, TurnTaken
from flowserver.engine.schedules.timing_cache import TimingCache, timing_of
from flowserver.machine.messages import Stop
from flowserver.machine.schedules.deciding import Decision, Start, computed_again, take_turn
from flowserver.machine.schedules.expression_error import ExpressionRejected
from flowserver.machine.schedules.refused_starts import refused
from flowserver.machine.schedules.start_input import input_of_start
from flowserver.machine.schedules.state import Kind, Loss, Refusal, Schedule
from flowserver.machine.schedules.timing import Timing
from flowserver.machine.state import Status
from flowserver.metrics.schedule_counts import ScheduleMetrics
from flowserver.store.executions.lookups import find_statuses
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.schedules.due_schedules import (
    DAMAGED_MS,
    ScheduleTurn,
    due_keys,
    later_schedules,
    next_turn_at,
    put_off_damaged,
    read_schedules,
    save_current_turns,
)

log = logging.getLogger(__name__)

TURNS_AT_ONCE = 500
"""Schedules in one iteration whose turns are due, and as many that wait for an end that has come."""

AWAITED_MAX = 100_000
"""Executions whose ends are to wake schedules; others are found by the rows."""

REFUSAL_CHARACTERS_MAX = 1_000
MISSING_MAX = 1_000
"""Schedules with missed runs that a node remembers for the overview."""

STOP_ERROR = "Schedule.Overlap"
"""The error of executions that an overlap policy stops."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A schedule as it was read, its timing, and its turn."""

    before: Schedule
    timing: Timing
    turn: Decision


class ScheduleLoop(DueLoop):
    """The source of due schedules, found by the partial index of `wake_at`."""

    name = "schedules"

    def __init__(self, context: EngineContext, starter: Starter, metrics: ScheduleMetrics) -> None:
        super().__init__(context.clock, context.membership)
        self._metrics = metrics
        self._lost_log = LimitedLog(log)
        self.missing: LRUCache[tuple[str, str], int] = LRUCache(MISSING_MAX)
        """Schedules, by flow and name, of which this node has found missed runs, and when (ms)."""
        self._context = context
        self._starter = starter
        self._timings = TimingCache()
        self._awaited: dict[str, str] = {}
        self._ended: set[str] = set()

    def execution_ended(self, execution_id: str) -> None:
        """An execution has ended, on this node or another; if a schedule waits for it, its turn is due."""
        schedule_id = self._awaited.pop(execution_id, None)
        if schedule_id is not None:
            self._ended.add(schedule_id)
            self.notice()

    def missed_since(self, since_ms: int) -> list[tuple[str, str, int]]:
        """Schedules with missed runs that this node found since an instant: flow, name, when (ms), latest first."""
        found = [(*path, at) for path, at in list(self.missing.items()) if at >= since_ms]
        return sorted(found, key=lambda each: -each[2])

    async def compute_again(self) -> int:
        """The clock was set: a tick that it has set further away is due earlier. Returns how many schedules changed."""
        count, after = 0, ""
        while True:
            changed, last = await self._aside(partial(self._later, after))
            saved = await self._save(changed)
            count += len(saved)
            if last is None:
                break
            after = last
        if count:
            log.warning("the clock was set: %d schedules are computed anew", count)
            self.note_due()
        return count

    def _later(self, after: str) -> tuple[list[Schedule], str | None]:
        now, changed = self._clock.now_ms(), []
        with self._context.database.read() as connection:
            found = later_schedules(connection, now, after, TURNS_AT_ONCE)
        for each in found:
            with suppress(ExpressionRejected):
                again = computed_again(each, timing_of(each), now)
                changed += [] if again is None else [again]
        return changed, found[-1].schedule_id if len(found) == TURNS_AT_ONCE else None

    async def handle_due(self) -> int | None:
        """Take the turns that are due now, each in the transaction of its start."""
        ended = set(islice(self._ended, TURNS_AT_ONCE))
        self._ended -= ended
        decided, damaged, next_at = await self._aside(lambda: self._look(ended))
        starting = [each for each in decided if each.turn.start is not None]
        quiet = [each for each in decided if each.turn.start is None]
        if damaged:
            until = self._clock.now_ms() + DAMAGED_MS
            await self._context.committer.write(lambda connection: put_off_damaged(connection, damaged, until))
        saved = await self._save([each.turn.schedule for each in quiet])
        taken = await all_of(self._start(each) for each in starting)
        valid = [each for each, is_saved in zip(starting, taken, strict=True) if is_saved]
        unstarted = [each for each in quiet if each.before.schedule_id in saved]
        for each in unstarted:
            self._note(each.before, each.turn.schedule)
        valid += unstarted
        await all_of(self._stop(execution_id) for each in valid for execution_id in each.turn.stops)
        if quiet or self._ended or any(is_saved is not None for is_saved in taken):
            return AT_ONCE
        if starting:  # the database reads but does not write
            self.notice(self.left_at)
        return next_at

    def _look(self, ended: set[str]) -> tuple[list[Decided], list[str], int | None]:
        """The turns of this node's share, the ids of damaged schedules, and when to look again."""
        self._context.clock_watch.look()  # so that no turn is taken by a clock whose change is not noticed
        now = self._clock.now_ms()
        share = self._membership.share
        with self._context.database.read() as connection:
            due = due_keys(connection, now, TURNS_AT_ONCE * share.nodes)
            next_at = next_turn_at(connection, now)
            mine = [schedule_id for schedule_id, _ in due if share.owns(schedule_id)]
            if len(mine) < len(due):
                next_at = min(now + LEFT_MS, next_at or now + LEFT_MS)
            left = [schedule_id for schedule_id, wake_at in due if wake_at <= now - LEFT_MS]
            chosen = ended.union((mine or left)[:TURNS_AT_ONCE])
            found, damaged = read_schedules(connection, sorted(chosen))
            return self._decide(connection, found, now), damaged, next_at

    def _decide(self, connection: Connection, schedules: list[Schedule], now: int) -> list[Decided]:
        runs = [run.execution_id for each in schedules for run in each.memory.recent if not run.is_judged]
        statuses = find_statuses(connection, runs)
        return [self._turn_of(each, statuses, now) for each in schedules]

    def _turn_of(self, schedule: Schedule, statuses: dict[str, Status], now: int) -> Decided:
        try:
            timing = self._timings.of(schedule)
        except ExpressionRejected as error:
            which = {"schedule": schedule.name, "flow": schedule.flow_name, "error": error}
            log.error("schedule %(schedule)s of flow %(flow)s waits to be changed: %(error)s", which)
            later = replace(schedule, wake_at=now + DAMAGED_MS)
            return Decided(schedule, self._timings.never, Decision(later, later))
        turn = take_turn(schedule, timing, statuses, now, self._context.limits.schedule_buffer_max)
        self._await_ends(turn.schedule)
        return Decided(schedule, timing, turn)

    def _await_ends(self, schedule: Schedule) -> None:
        memory = schedule.memory
        if not (memory.buffered or memory.backfills or schedule.pauses_on_failure):
            return
        for run in memory.recent:
            if not run.is_judged and len(self._awaited) < AWAITED_MAX:
                self._awaited[run.execution_id] = schedule.schedule_id

    async def _save(self, changed: Sequence[Schedule]) -> set[str]:
        """Save turns; returns the ids of their schedules. Those that have changed meanwhile are left out."""
        if not changed:
            return set()
        return await self._context.committer.write(lambda connection: save_current_turns(connection, changed))

    async def _start(self, decided: Decided) -> bool:
        """Make the start; returns whether its turn was saved. The turn is over unless this raises SQLAlchemyError."""
        request = request_of(decided)
        start = decided.turn.start
        assert start is not None
        try:
            await self._starter.start(request)
        except TurnTaken:
            return False
        except ExecutionAlreadyExists:  # the tick has run before
            self._note(decided.before, start.if_taken)
        except FlowServerError as error:
            return await self._refuse(decided, error)
        else:
            self._note(decided.before, decided.turn.schedule)
            if start.action.kind is Kind.TICK:
                self._metrics.run_started((self._clock.now_ms() - start.action.at) / 1000)
        return True

    async def _refuse(self, decided: Decided, error: FlowServerError) -> bool:
        schedule, start = decided.turn.undecided, decided.turn.start
        assert start is not None
        which = {"schedule": schedule.name, "flow": schedule.flow_name, "error": error.message}
        log.warning("schedule %(schedule)s of flow %(flow)s could not start: %(error)s", which)
        message = error.message[:REFUSAL_CHARACTERS_MAX]
        refusal = Refusal(self._clock.now_ms(), start.action.at, error.code, message, start.action.kind)
        changed = refused(schedule, start.action, decided.timing, refusal)
        is_saved = bool(await self._save([changed]))
        if is_saved:
            self._note(decided.before, changed)
        return is_saved

    def _note(self, before: Schedule, after: Schedule) -> None:
        """Count and log the runs that a committed turn has missed or skipped."""
        self._note_lost(after, "missed", after.memory.missed - before.memory.missed, after.memory.last_missed)
        self._note_lost(after, "skipped", after.memory.skipped - before.memory.skipped, after.memory.last_skipped)

    def _note_lost(self, schedule: Schedule, how: str, count: int, last: Loss | None) -> None:
        if count <= 0 or last is None:
            return
        self._metrics.runs_lost(how, count)
        which = {"schedule": schedule.name, "flow": schedule.flow_name, "runs": count, "reason": last.reason}
        form = f"schedule %(schedule)s of flow %(flow)s {how} %(runs)d scheduled runs, the last of %(at)s: %(reason)s"
        level = logging.WARNING if how == "missed" else logging.INFO
        self._lost_log.write(level, schedule.schedule_id, form, {**which, "at": format_instant(last.at)})
        if how == "missed":
            self.missing[schedule.flow_name, schedule.name] = self._clock.now_ms()

    async def _stop(self, execution_id: str) -> None:
        stop = Stop(STOP_ERROR, "the schedule's overlap policy stops it for the next execution")
        await self._context.committer.submit(Envelope(execution_id, stop))


def request_of(decided: Decided) -> NewExecution:
    """The start that a turn has chosen."""
    schedule, turn = decided.before, decided.turn
    assert turn.start is not None
    return NewExecution(
        flow_name=schedule.flow_name,
        execution_id=turn.start.execution_id,
        name=turn.start.name,
        input_text=_input_of(schedule, turn.start),
        qualifier=schedule.qualifier or None,
        turn=ScheduleTurn(schedule, turn.schedule, turn.start.if_taken),
    )


def _input_of(schedule: Schedule, start: Start) -> str:
    payload = load_json_object(schedule.payload) if schedule.payload else {}
    return dump_json(input_of_start(payload, start.action.at, schedule.name))
