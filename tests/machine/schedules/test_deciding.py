"""Turns of a schedule: catching up, overlapping, pausing, triggers, backfills and refusals."""

from datetime import UTC

import pytest
from msgspec.structs import replace

from flowserver.machine.schedules.counting import last_instant
from flowserver.machine.schedules.deciding import ACTIONS_MAX, LOOK_AGAIN_MS, Start, computed_again, paused, take_turn
from flowserver.machine.schedules.execution_names import execution_name
from flowserver.machine.schedules.refused_starts import BACKOFF_MS, TRIES_MAX, refused
from flowserver.machine.schedules.state import (
    Action,
    Backfill,
    Kind,
    Loss,
    LossReason,
    Memory,
    Overlap,
    Refusal,
    Run,
    Schedule,
)
from flowserver.machine.schedules.timing import Every, read_timing
from flowserver.machine.state import Status

MINUTE = 60_000
EVERY_MINUTE = Every(0, 1)
BUFFER_MAX = 3


class Case:
    """A schedule of every minute, and the executions that it has started."""

    def __init__(self, **fields: object) -> None:
        given = {"overlap": Overlap.ALLOW_ALL, "next_at": MINUTE, "catch_up_seconds": 600} | fields
        self.schedule = Schedule(
            schedule_id="id", flow_id="f", flow_name="f", name="s", expression="@every 1m", anchor_at=0,
            wake_at=MINUTE, created_at=0, modified_at=0, **given,
        )  # fmt: skip
        self.statuses: dict[str, Status] = {}
        self.stops: tuple[str, ...] = ()

    def turn(self, now: int) -> Start | None:
        turn = take_turn(self.schedule, EVERY_MINUTE, self.statuses, now, BUFFER_MAX)
        self.schedule, self.stops = turn.schedule, turn.stops
        if turn.start is not None:
            self.statuses[turn.start.execution_id] = Status.RUNNING
        return turn.start

    def turns(self, now: int) -> list[int]:
        """The instants of the starts, in minutes, until nothing is left to do now."""
        found = []
        for _ in range(3_000):
            if self.schedule.wake_at is None or self.schedule.wake_at > now:
                break
            start = self.turn(now)
            if start is not None:
                found.append(start.action.at // MINUTE)
        return found

    def end(self, status: Status = Status.SUCCEEDED) -> None:
        self.statuses = {each: status if old is Status.RUNNING else old for each, old in self.statuses.items()}
        if self.schedule.wake_at is not None:
            self.schedule = replace(self.schedule, wake_at=0)

    @property
    def memory(self) -> Memory:
        return self.schedule.memory


def test_a_tick_starts_one_execution() -> None:
    case = Case()
    start = case.turn(MINUTE)
    assert start is not None
    assert (start.name, start.action) == ("s-19700101T000100Z", Action(MINUTE, Kind.TICK, Overlap.ALLOW_ALL))
    assert (case.schedule.next_at, case.schedule.wake_at, case.memory.started) == (2 * MINUTE, 2 * MINUTE, 1)
    assert start.if_taken.memory == Memory(skipped=1, last_skipped=Loss(MINUTE, LossReason.DONE))
    assert start.if_taken.next_at == 2 * MINUTE


@pytest.mark.parametrize(
    ("overlap", "started", "later", "skipped"),
    [
        (Overlap.ALLOW_ALL, [1, 2, 3, 4, 5], [], 0),
        (Overlap.SKIP, [1], [], 4),
        (Overlap.BUFFER_ONE, [1], [2], 3),
        (Overlap.BUFFER_ALL, [1], [2, 3, 4], 1),
        (Overlap.CANCEL_OTHER, [1], [5], 3),
        (Overlap.TERMINATE_OTHER, [1], [5], 3),
    ],
)
def test_five_ticks_during_a_pause_of_the_server(
    overlap: Overlap, started: list[int], later: list[int], skipped: int
) -> None:
    case = Case(overlap=overlap)
    now = 5 * MINUTE + 1
    assert case.turns(now) == started
    found = []
    while case.memory.buffered:
        assert bool(case.stops) == (overlap in (Overlap.CANCEL_OTHER, Overlap.TERMINATE_OTHER))
        case.end()
        found += case.turns(now)
    assert (found, case.memory.skipped, case.memory.missed) == (later, skipped, 0)
    assert case.schedule.wake_at == 6 * MINUTE


def test_ticks_beyond_the_catch_up_window_are_missed() -> None:
    case = Case(catch_up_seconds=60)
    assert case.turns(5 * MINUTE) == [4, 5]
    assert (case.memory.missed, case.memory.last_missed) == (3, Loss(3 * MINUTE, LossReason.LATE))


def test_a_long_sleep_counts_a_bounded_number() -> None:
    case = Case(catch_up_seconds=60)
    assert case.turns(10_000 * MINUTE) == [9_999, 10_000]
    assert (case.memory.missed, case.memory.last_missed) == (1_000, Loss(9_998 * MINUTE, LossReason.LATE))


def test_a_schedule_remembers_what_it_skipped_last_and_why() -> None:
    case = Case(overlap=Overlap.SKIP)
    assert case.turns(3 * MINUTE) == [1]
    assert case.memory.last_skipped == Loss(3 * MINUTE, LossReason.OVERLAP)
    buffering = Case(overlap=Overlap.BUFFER_ONE)
    assert buffering.turns(2 * MINUTE) == [1]
    assert paused(buffering.schedule, "").memory.last_skipped == Loss(2 * MINUTE, LossReason.PAUSED)


def test_a_clock_that_was_set_back_brings_the_next_tick_nearer() -> None:
    far = Case(next_at=1_000 * MINUTE).schedule
    far = replace(far, wake_at=1_000 * MINUTE)
    again = computed_again(far, EVERY_MINUTE, MINUTE)
    assert again is not None
    assert (again.next_at, again.wake_at) == (2 * MINUTE, 2 * MINUTE)
    assert computed_again(again, EVERY_MINUTE, MINUTE) is None
    assert computed_again(again, EVERY_MINUTE, 2 * MINUTE - 1) is None


def test_a_clock_that_was_set_back_brings_other_work_nearer() -> None:
    waits = Memory(buffered=(Action(MINUTE, Kind.TICK, Overlap.BUFFER_ONE),))
    paused_one = replace(Case(next_at=None, memory=waits).schedule, wake_at=1_000 * MINUTE)
    again = computed_again(paused_one, EVERY_MINUTE, MINUTE)
    assert again is not None
    assert (again.next_at, again.wake_at) == (None, MINUTE + LOOK_AGAIN_MS)


def test_the_last_instant_of_a_rare_schedule_is_found() -> None:
    yearly = read_timing("0 0 0 1 1 ?", UTC, 0)
    assert last_instant(yearly, 0, 400 * 86_400_000) == 365 * 86_400_000
    assert last_instant(yearly, 1, 364 * 86_400_000) is None


def test_a_turn_decides_on_a_bounded_number() -> None:
    case = Case(overlap=Overlap.SKIP, catch_up_seconds=10**7)
    now = (ACTIONS_MAX + 5) * MINUTE
    assert case.turn(now) is not None
    assert case.turn(now) is None
    assert case.schedule.next_at == (ACTIONS_MAX + 2) * MINUTE
    assert case.turns(now) == []
    assert case.memory.skipped == ACTIONS_MAX + 4


def test_a_buffered_tick_is_decided_again() -> None:
    case = Case(overlap=Overlap.BUFFER_ALL)
    case.turn(MINUTE)
    now = 2 * MINUTE + 5
    case.turn(now)
    assert case.schedule.wake_at == now + LOOK_AGAIN_MS


def test_a_run_that_retention_deleted_does_not_block() -> None:
    case = Case(overlap=Overlap.SKIP)
    case.turn(MINUTE)
    case.statuses.clear()
    assert case.turns(2 * MINUTE) == [2]


@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMED_OUT])
def test_a_failure_pauses_when_asked_to(status: Status) -> None:
    case = Case(pauses_on_failure=True, overlap=Overlap.BUFFER_ALL)
    case.turn(MINUTE)
    case.turn(2 * MINUTE)
    case.end(status)
    assert case.turns(2 * MINUTE + 1) == []
    assert not case.schedule.is_enabled
    assert case.schedule.note == "paused because the execution s-19700101T000100Z failed"
    assert (case.schedule.next_at, case.schedule.wake_at, case.memory.skipped) == (None, None, 1)
    resumed = replace(case.schedule, is_enabled=True, next_at=3 * MINUTE, wake_at=3 * MINUTE)
    case.schedule = resumed
    assert case.turns(3 * MINUTE) == [3]


def test_a_stop_is_no_failure() -> None:
    case = Case(pauses_on_failure=True)
    case.turn(MINUTE)
    case.end(Status.STOPPED)
    assert case.turns(2 * MINUTE) == [2]


def test_the_number_of_actions_is_limited() -> None:
    case = Case(actions_left=2)
    assert case.turns(5 * MINUTE) == [1, 2]
    assert (case.schedule.actions_left, case.schedule.next_at, case.schedule.wake_at) == (0, None, None)


@pytest.mark.parametrize("overlap", [Overlap.BUFFER_ALL, Overlap.TERMINATE_OTHER])
def test_a_buffered_tick_counts_as_a_remaining_action(overlap: Overlap) -> None:
    case = Case(actions_left=3, overlap=overlap)
    found = case.turns(2 * MINUTE)
    assert (found, case.schedule.actions_left, case.schedule.next_at) == ([1], 1, 3 * MINUTE)
    case.schedule = replace(case.schedule, wake_at=0)
    found += case.turns(9 * MINUTE)
    while case.memory.buffered:
        case.end()
        found += case.turns(9 * MINUTE)
    assert len(found) == (3 if overlap is Overlap.BUFFER_ALL else 2)
    assert case.schedule.actions_left == (0 if overlap is Overlap.BUFFER_ALL else 1)


def test_a_pause_drops_buffered_ticks() -> None:
    case = Case(actions_left=3, overlap=Overlap.BUFFER_ALL)
    case.turns(3 * MINUTE)
    assert case.schedule.actions_left == 0
    assert paused(case.schedule, "").actions_left == 2


def test_a_trigger_starts_under_its_own_name() -> None:
    triggers = (Action(90_123, Kind.TRIGGER, Overlap.ALLOW_ALL), Action(90_124, Kind.TRIGGER, Overlap.ALLOW_ALL))
    case = Case(actions_left=5, memory=Memory(triggers=triggers))
    start = case.turn(90_500)
    assert start is not None
    assert start.name == "s-19700101T000130123Z"
    assert case.schedule.wake_at == 90_500
    assert case.schedule.actions_left == 5
    assert case.turns(90_500) == [1, 1]


def backfilling(overlap: Overlap, *, first: int, last: int) -> Case:
    backfill = Backfill(first * MINUTE, last * MINUTE, overlap)
    return Case(next_at=1_000 * MINUTE, memory=Memory(backfills=(backfill,)))


@pytest.mark.parametrize(
    ("overlap", "started", "later"),
    [
        (Overlap.ALLOW_ALL, [10, 11, 12, 13, 14, 15], []),
        (Overlap.BUFFER_ALL, [10], [11, 12, 13, 14, 15]),
        (Overlap.BUFFER_ONE, [10], [11]),
        (Overlap.SKIP, [10], []),
    ],
)
def test_a_backfill_has_its_own_overlap_policy(overlap: Overlap, started: list[int], later: list[int]) -> None:
    case = backfilling(overlap, first=10, last=15)
    now = 900 * MINUTE
    assert case.turns(now) == started
    found: list[int] = []
    while case.memory.buffered or case.memory.backfills:
        case.end()
        found += case.turns(now)
    assert found == later
    assert case.schedule.wake_at == 1_000 * MINUTE


def test_running_executions_are_remembered_rather_than_others() -> None:
    case = Case(catch_up_seconds=6_000)
    case.turn(MINUTE)
    case.turn(2 * MINUTE)
    first, second = case.memory.recent
    case.statuses[second.execution_id] = Status.SUCCEEDED
    case.turns(11 * MINUTE)
    assert len(case.memory.recent) == 10
    assert first in case.memory.recent
    assert second.execution_id not in {run.execution_id for run in case.memory.recent}
    case.turns(12 * MINUTE)
    assert first not in case.memory.recent


def test_long_names_are_cut_and_hashed() -> None:
    long = execution_name("s" * 128, 0)
    assert len(long) == 128
    assert long.endswith("-19700101T000000Z")
    assert execution_name("s" * 127 + "t", 0) != long
    assert execution_name("s" * 111, 0) == "s" * 111 + "-19700101T000000Z"


REFUSAL = Refusal(0, 0, "ResourceThrottled", "too many")


def refuse(schedule: Schedule, action: Action, now: int) -> Schedule:
    return refused(schedule, action, EVERY_MINUTE, replace(REFUSAL, refused_at=now, at=action.at, kind=action.kind))


def test_a_refused_tick_is_retried_until_it_is_missed() -> None:
    case = Case(catch_up_seconds=60)
    now, tries = MINUTE, 0
    while case.memory.missed == 0:
        turn = take_turn(case.schedule, EVERY_MINUTE, {}, now, BUFFER_MAX)
        assert turn.start is not None
        case.schedule = refuse(turn.undecided, turn.start.action, now)
        tries += 1
        assert case.schedule.wake_at is not None
        now = case.schedule.wake_at
    assert tries == 8
    assert case.memory.refusals == 8
    assert case.schedule.next_at == 2 * MINUTE


@pytest.mark.parametrize(
    ("memory", "action"),
    [
        (
            Memory(buffered=(Action(1, Kind.TICK, Overlap.SKIP), Action(2, Kind.TICK, Overlap.SKIP))),
            Action(1, Kind.TICK, Overlap.SKIP),
        ),
        (Memory(triggers=(Action(1, Kind.TRIGGER, Overlap.SKIP),)), Action(1, Kind.TRIGGER, Overlap.SKIP)),
        (
            Memory(backfills=(Backfill(MINUTE, 2 * MINUTE, Overlap.SKIP),)),
            Action(MINUTE, Kind.BACKFILL, Overlap.SKIP),
        ),
        (Memory(backfills=(Backfill(MINUTE, MINUTE, Overlap.SKIP),)), Action(MINUTE, Kind.BACKFILL, Overlap.SKIP)),
    ],
)
def test_other_refused_starts_are_given_up(memory: Memory, action: Action) -> None:
    schedule = Case(memory=memory).schedule
    for tries in range(TRIES_MAX):
        assert schedule.memory.missed == 0
        assert schedule.memory.refusals == tries
        schedule = refuse(schedule, action, 0)
        assert schedule.wake_at in BACKOFF_MS
    assert schedule.memory.missed == 1
    left = sum(map(len, (schedule.memory.buffered, schedule.memory.triggers, schedule.memory.backfills)))
    assert left == (len(memory.buffered) == 2 or memory.backfills[:1] == (Backfill(MINUTE, 2 * MINUTE, Overlap.SKIP),))


def test_a_trigger_is_tried_ten_times_after_refusals_of_another_start() -> None:
    case = Case(catch_up_seconds=3_600)
    now = MINUTE

    def refuse_next() -> Action:
        nonlocal now
        turn = take_turn(case.schedule, EVERY_MINUTE, {}, now, BUFFER_MAX)
        assert turn.start is not None
        case.schedule = refuse(turn.undecided, turn.start.action, now)
        assert case.schedule.wake_at is not None
        now = case.schedule.wake_at
        return turn.start.action

    assert {refuse_next() for _ in range(12)} == {Action(MINUTE, Kind.TICK, Overlap.ALLOW_ALL)}
    at = MINUTE  # the instant of the tick: its kind tells the trigger from it
    trigger = Action(at, Kind.TRIGGER, Overlap.ALLOW_ALL)
    case.schedule = replace(case.schedule, memory=replace(case.memory, triggers=(trigger,)))
    for tries in range(1, TRIES_MAX):
        assert refuse_next() == trigger
        assert (case.memory.triggers, case.memory.refusals, case.memory.missed) == ((trigger,), tries, 0)
    assert refuse_next() == trigger
    assert (case.memory.triggers, case.memory.missed) == ((), 1)


@pytest.mark.parametrize("last", [50, 40])
def test_a_refused_tick_of_a_later_backfill_leaves_those_before_it(last: int) -> None:
    """A running execution blocks the first backfill, so that the turn chooses from the second."""
    blocked = Backfill(90 * MINUTE, 100 * MINUTE, Overlap.SKIP)
    tried = Backfill(40 * MINUTE, last * MINUTE, Overlap.ALLOW_ALL)
    later = Backfill(40 * MINUTE, 60 * MINUTE, Overlap.ALLOW_ALL)
    run = Run(0, Kind.TICK, "x", "x", 0)
    case = Case(next_at=None, memory=Memory(backfills=(blocked, tried, later), recent=(run,)))
    for _ in range(TRIES_MAX):
        assert case.memory.backfills == (blocked, tried, later)
        turn = take_turn(case.schedule, EVERY_MINUTE, {"x": Status.RUNNING}, 200 * MINUTE, BUFFER_MAX)
        assert turn.start is not None
        assert turn.start.action == Action(40 * MINUTE, Kind.BACKFILL, Overlap.ALLOW_ALL)
        case.schedule = refuse(turn.undecided, turn.start.action, 200 * MINUTE)
    following = () if last == 40 else (replace(tried, next_at=41 * MINUTE),)
    assert case.memory.backfills == (blocked, *following, later)


def test_an_execution_is_judged_once() -> None:
    run = Run(0, Kind.TICK, "x", "x", 0, is_judged=True)
    case = Case(pauses_on_failure=True, memory=Memory(recent=(run,)))
    case.statuses["x"] = Status.FAILED
    assert case.turns(MINUTE) == [1]


def test_a_yearly_timing() -> None:
    assert read_timing("0 0 0 1 1 ?", UTC, 0).next_after(0) is not None
