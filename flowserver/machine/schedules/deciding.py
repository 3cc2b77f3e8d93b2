"""One turn of a schedule: decides on what is due, up to the first start, and says when the next turn is due.

A turn starts one execution at most, so that the start and the changed row are one transaction. The order is: what is
buffered, triggers, ticks, backfills. A tick that is older than the catch-up window is missed. While an execution of the
schedule runs, or one is buffered, the overlap policy decides. An execution that a policy stops is stopped first; what
follows it is buffered until it has ended, so a crash between the two loses neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from flowserver.base.derived_ids import scheduled_execution_id
from flowserver.machine.schedules.counting import COUNTED_MAX, count_instants, last_instant
from flowserver.machine.schedules.execution_names import execution_name
from flowserver.machine.schedules.state import (
    RECENT_MAX,
    STOPPING,
    Action,
    Kind,
    Loss,
    LossReason,
    Memory,
    Overlap,
    Run,
    Schedule,
)
from flowserver.machine.schedules.timing import Timing
from flowserver.machine.state import Status

ACTIONS_MAX: Final = 1_000
"""Ticks that one turn decides on; more wait for the next turn."""

LOOK_AGAIN_MS: Final = 30_000
"""When to look again at an execution that starts wait for, should its end not be noticed."""

AGAIN_MS: Final = 60_000
"""The longest time for which a schedule waits for anything but a tick."""

FAILED: Final = (Status.FAILED, Status.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Start:
    """An execution to start, and the schedule if its name turns out to be taken: by an earlier run of that tick."""

    action: Action
    execution_id: str
    name: str
    if_taken: Schedule


@dataclass(frozen=True, slots=True)
class Decision:
    """What a turn comes to: the changed schedule, a start, and executions to stop."""

    schedule: Schedule
    undecided: Schedule
    """The schedule if the start is refused: ends are judged and old ticks missed, but nothing is decided."""
    start: Start | None = None
    stops: tuple[str, ...] = ()


def take_turn(
    schedule: Schedule, timing: Timing, statuses: Mapping[str, Status], now_ms: int, buffer_max: int
) -> Decision:
    """Decide on what is due. `statuses` has those of recent runs, as far as the executions still exist."""
    schedule = _judge(schedule, statuses)
    schedule = _miss(schedule, timing, now_ms)
    deciding = _Deciding(schedule, timing, statuses, now_ms, buffer_max)
    chosen = deciding.choose()
    left = deciding.schedule
    start = None
    if chosen is not None:
        started = deciding.with_run(chosen)
        taken = _skipping(left, chosen)
        if_taken = replace(taken, wake_at=_wake_at(taken, now_ms, is_cut_short=True))
        run = started.memory.recent[-1]
        start = Start(chosen, run.execution_id, run.name, if_taken)
        left = started
    wake_at = _wake_at(left, now_ms, is_cut_short=start is not None or deciding.is_cut_short)
    stops = tuple(run.execution_id for run in deciding.running) if _stops(left.memory) else ()
    return Decision(replace(left, wake_at=wake_at), schedule, start, stops)


def is_running(run: Run, statuses: Mapping[str, Status]) -> bool:
    """Whether a recent run's execution has not ended. An execution that retention has deleted has ended."""
    return statuses.get(run.execution_id) is Status.RUNNING


def paused(schedule: Schedule, note: str) -> Schedule:
    """The schedule without further ticks. What ticks have buffered counts as skipped; triggers and backfills stay."""
    memory = schedule.memory
    kept = tuple(action for action in memory.buffered if action.kind is not Kind.TICK)
    dropped_runs = [action for action in memory.buffered if action.kind is Kind.TICK]
    last = Loss(dropped_runs[-1].at, LossReason.PAUSED) if dropped_runs else memory.last_skipped
    memory = replace(memory, buffered=kept, skipped=memory.skipped + len(dropped_runs), last_skipped=last)
    left = schedule.actions_left if schedule.actions_left is None else schedule.actions_left + len(dropped_runs)
    return replace(schedule, is_enabled=False, note=note, next_at=None, actions_left=left, memory=memory)


def computed_again(schedule: Schedule, timing: Timing, now_ms: int) -> Schedule | None:
    """The schedule after the clock was set: its next tick is the first from now on. None if nothing changes."""
    next_at = schedule.next_at
    if next_at is not None and (first := timing.next_after(now_ms)) is not None:
        next_at = min(next_at, first)
    wake_at = min(_wake_at(replace(schedule, next_at=next_at), now_ms, is_cut_short=False) or now_ms, now_ms + AGAIN_MS)
    if next_at == schedule.next_at and (next_at == schedule.wake_at or (schedule.wake_at or 0) <= now_ms + AGAIN_MS):
        return None
    return replace(schedule, next_at=next_at, wake_at=wake_at)


def _judge(schedule: Schedule, statuses: Mapping[str, Status]) -> Schedule:
    """Look at the runs that have ended since the last turn; with `pauses_on_failure` a failed run pauses."""
    memory = schedule.memory
    ended = [run for run in memory.recent if not run.is_judged and not is_running(run, statuses)]
    if not ended:
        return schedule
    recent = tuple(replace(run, is_judged=True) if run in ended else run for run in memory.recent)
    schedule = replace(schedule, memory=replace(memory, recent=recent))
    failed = [run for run in ended if statuses.get(run.execution_id) in FAILED]
    if failed and schedule.pauses_on_failure and schedule.is_enabled:
        return paused(schedule, f"paused because the execution {failed[-1].name} failed")
    return schedule


def _miss(schedule: Schedule, timing: Timing, now_ms: int) -> Schedule:
    """Pass over the ticks that are older than the catch-up window; of many, COUNTED_MAX are counted."""
    oldest = now_ms - schedule.catch_up_seconds * 1000
    if schedule.next_at is None or schedule.next_at >= oldest:
        return schedule
    count = count_instants(timing, schedule.next_at, oldest - 1, COUNTED_MAX)
    memory = schedule.memory
    was_refused = memory.refusal is not None and memory.refusal.kind is Kind.TICK and memory.refusals > 0
    at = last_instant(timing, schedule.next_at, oldest - 1)
    loss = Loss(schedule.next_at if at is None else at, LossReason.REFUSED if was_refused else LossReason.LATE)
    memory = replace(memory, missed=memory.missed + count, last_missed=loss)
    return replace(schedule, next_at=timing.next_after(oldest - 1), memory=memory)


class _Deciding:
    """The decisions of one turn, up to the first start."""

    def __init__(
        self, schedule: Schedule, timing: Timing, statuses: Mapping[str, Status], now_ms: int, buffer_max: int
    ) -> None:
        self.schedule = schedule
        self.running = [run for run in schedule.memory.recent if is_running(run, statuses)]
        self.is_cut_short = False
        self._timing = timing
        self._now_ms = now_ms
        self._buffer_max = buffer_max

    def choose(self) -> Action | None:
        """The next start, None if nothing is to be started now."""
        memory = self.schedule.memory
        if memory.buffered and not self.running:
            self._change(buffered=memory.buffered[1:])
            return memory.buffered[0]
        for _ in range(ACTIONS_MAX):
            action = self._take()
            if action is None:
                return None
            if self._starts(action):
                return action
        self.is_cut_short = True
        return None

    def with_run(self, action: Action) -> Schedule:
        """The schedule after this start."""
        schedule, is_trigger = self.schedule, action.kind is Kind.TRIGGER
        run = Run(
            at=action.at,
            kind=action.kind,
            execution_id=scheduled_execution_id(schedule.schedule_id, action.at, is_trigger=is_trigger),
            name=execution_name(schedule.name, action.at, with_ms=is_trigger),
            started_at=self._now_ms,
        )
        memory = schedule.memory
        memory = replace(
            memory, recent=_trimmed((*memory.recent, run)), started=memory.started + 1, refusals=0, refusal=None
        )
        return replace(schedule, memory=memory)

    @property
    def _is_blocked(self) -> bool:
        return bool(self.running or self.schedule.memory.buffered)

    def _take(self) -> Action | None:
        """Take the next action off the triggers, ticks and backfills."""
        schedule, memory = self.schedule, self.schedule.memory
        if memory.triggers:
            self._change(triggers=memory.triggers[1:])
            return memory.triggers[0]
        if schedule.next_at is not None and schedule.next_at <= self._now_ms:
            self.schedule = replace(schedule, next_at=self._timing.next_after(schedule.next_at))
            return Action(schedule.next_at, Kind.TICK, schedule.overlap)
        if memory.backfills:
            return self._take_of_backfill()
        return None

    def _take_of_backfill(self) -> Action | None:
        first, *others = self.schedule.memory.backfills
        if first.overlap is Overlap.BUFFER_ALL and self._is_blocked:
            return None  # the range itself is the buffer
        following = self._timing.next_after(first.next_at)
        if following is not None and following <= first.to_at:
            others = [replace(first, next_at=following), *others]
        self._change(backfills=tuple(others))
        return Action(first.next_at, Kind.BACKFILL, first.overlap)

    def _starts(self, action: Action) -> bool:
        """Whether the action starts now; otherwise it is buffered or dropped."""
        if action.overlap is Overlap.ALLOW_ALL or not self._is_blocked:
            self._use_up(action, 1)
            return True
        buffered = self.schedule.memory.buffered
        if action.overlap in STOPPING:
            self._drop(buffered)
            for dropped in buffered:
                self._use_up(dropped, -1)
            self._use_up(action, 1)
            self._change(buffered=(action,))
        elif action.overlap is Overlap.SKIP or len(buffered) >= self._room(action.overlap):
            self._drop([action])
        else:
            self._use_up(action, 1)
            self._change(buffered=(*buffered, action))
        return False

    def _use_up(self, action: Action, count: int) -> None:
        """A tick that starts or is buffered is one of the actions that are left; with none left there is no next."""
        left = self.schedule.actions_left
        if left is not None and action.kind is Kind.TICK:
            left -= count
            self.schedule = replace(
                self.schedule, actions_left=left, next_at=None if left == 0 else self.schedule.next_at
            )

    def _room(self, overlap: Overlap) -> int:
        return 1 if overlap is Overlap.BUFFER_ONE else self._buffer_max

    def _drop(self, dropped: Sequence[Action]) -> None:
        if dropped:
            loss = Loss(dropped[-1].at, LossReason.OVERLAP)
            self._change(skipped=self.schedule.memory.skipped + len(dropped), last_skipped=loss)

    def _change(self, **fields: object) -> None:
        self.schedule = replace(self.schedule, memory=replace(self.schedule.memory, **fields))


def _skipping(schedule: Schedule, action: Action) -> Schedule:
    memory, loss = schedule.memory, Loss(action.at, LossReason.DONE)
    return replace(schedule, memory=replace(memory, skipped=memory.skipped + 1, last_skipped=loss))


def _trimmed(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """The newest runs; those whose end has not been seen are kept rather than others."""
    if len(runs) <= RECENT_MAX:
        return runs
    leaving = next((run for run in runs if run.is_judged), runs[0])
    return tuple(run for run in runs if run is not leaving)


def _stops(memory: Memory) -> bool:
    return bool(memory.buffered) and memory.buffered[0].overlap in STOPPING


def _wake_at(schedule: Schedule, now_ms: int, *, is_cut_short: bool) -> int | None:
    """When the next turn is due. After a turn that was cut short there may be more to do now."""
    memory = schedule.memory
    waits = bool(memory.buffered or memory.backfills)
    if is_cut_short and (waits or memory.triggers):
        return now_ms
    instants = [] if schedule.next_at is None else [schedule.next_at]
    if waits:
        instants.append(now_ms + LOOK_AGAIN_MS)
    return min(instants, default=None)
